# Results: objects of class htest, made of the JSON document that the command prints.

SCHEMA <- "umpc-report-1"
KINDS <- c("noise", "records", "population", "hoeffding")

# A result from the text of a report.
result_of <- function(text, data_name) {
  force(text) # the command's own failure is no wrong report
  report <- tryCatch(
    jsonlite::fromJSON(text, simplifyVector = FALSE),
    error = function(problem) list()
  )
  if (!identical(report$schema, SCHEMA)) {
    fail(sprintf("a report of the schema %s was expected from umpc; use the same version", SCHEMA))
  }
  if (length(report$parts) > 0) {
    return(results_of_parts(report, text, data_name))
  }
  if (is.null(report$estimate) && length(report$answers) == 0) {
    fail(sprintf("the study released no value: %s", report$note))
  }
  one_result(report, text, data_name)
}

# A result of one value of a report.
one_result <- function(report, text, data_name) {
  result <- list(
    estimate = stats::setNames(number_or_na(report$estimate), report$statistic),
    method = sprintf(
      "Private %s (epsilon = %s, delta = %s, %s nodes)", report$statistic,
      format(report$epsilon), format(report$delta), format(report$nodes)
    ),
    data.name = sprintf("%s, %d records", data_name, report$records),
    report = report,
    json = text
  )
  class(result) <- c("umpc_result", "htest")
  with_inference(result, report$inference)
}

# The results of a study of several values or strata: a named list, with a result for each.
results_of_parts <- function(report, text, data_name) {
  parts <- report$parts
  results <- lapply(seq_along(parts), function(place) {
    part <- parts[[place]]
    own <- report
    own[c("parts", "inference_of_parts")] <- NULL
    own$statistic <- part$statistic
    own$epsilon <- part$epsilon
    own$note <- part$note
    own$estimate <- if (is.null(part$estimate)) NA_real_ else part$estimate
    own$inference <- report$inference_of_parts[[place]]
    result <- one_result(own, text, sprintf("%s, %s", data_name, part_name(part)))
    result$part <- place
    result
  })
  names(results) <- vapply(parts, part_name, "")
  structure(results, class = "umpc_results", matrix = report$matrix)
}

# The statistic of every pair of columns, of a study with `matrix = true`.
umpc_matrix <- function(results) {
  found <- attr(results, "matrix")
  if (is.null(found)) {
    fail("a result of one statistic of every pair of columns was expected: a study with matrix = true")
  }
  columns <- unlist(found$columns)
  rows <- function(values) {
    numbers <- unlist(lapply(values, lapply, function(each) if (is.null(each)) NA_real_ else each))
    if (is.null(numbers)) {
      return(NULL)
    }
    matrix(as.numeric(numbers), length(columns), byrow = TRUE, dimnames = list(columns, columns))
  }
  keys <- c("values", "low", "high", "p_values", "holm", "nearest")
  structure(
    c(lapply(stats::setNames(found[keys], keys), rows), found[c("statistic", "moved")]),
    class = "umpc_matrix"
  )
}

print.umpc_matrix <- function(x, ...) {
  cat(sprintf("Private %s of %d columns\n\n", x$statistic, nrow(x$values)))
  print(round(x$values, 3), ...)
  cat("\np-values, corrected by Holm's method\n\n")
  print(signif(x$holm, 3), ...)
  if (x$moved > 0) {
    cat(sprintf("\nThe nearest correlation matrix differs by up to %s.\n", signif(x$moved, 2)))
  }
  invisible(x)
}

plot.umpc_matrix <- function(x, ...) {
  count <- nrow(x$values)
  old <- graphics::par(mar = c(7, 7, 2, 1))
  on.exit(graphics::par(old))
  colors <- grDevices::colorRampPalette(c("#d9814f", "white", "#5b8fc9"))(101)
  graphics::image(
    seq_len(count), seq_len(count), t(pmin(pmax(x$values, -1), 1)[count:1, , drop = FALSE]),
    zlim = c(-1, 1), col = colors, axes = FALSE, xlab = "", ylab = "", main = x$statistic
  )
  graphics::axis(1, seq_len(count), colnames(x$values), las = 2)
  graphics::axis(2, seq_len(count), rev(rownames(x$values)), las = 2)
  invisible(x)
}

# A value's statistic, with its stratum if it has one.
part_name <- function(part) {
  if (isTRUE(nzchar(part$stratum))) {
    return(sprintf("%s, %s", part$statistic, part$stratum))
  }
  part$statistic
}

print.umpc_results <- function(x, ...) {
  for (result in x) {
    print(result, ...)
    if (isTRUE(nzchar(result$report$note))) {
      cat(result$report$note, "\n\n")
    }
  }
  invisible(x)
}

# A result with the test and the interval of an inference.
with_inference <- function(result, inference) {
  test <- inference$test
  if (!is.null(test)) {
    result$p.value <- test$p_value
    result$p.is.below <- isTRUE(test$is_below)
    result$null.value <- stats::setNames(test$null, names(result$estimate))
    result$alternative <- sub("-", ".", test$alternative, fixed = TRUE) # R's word is two.sided
    result$hypothesis <- test$hypothesis
  }
  interval <- interval_of(inference, c("population", "records"))
  if (!is.null(interval)) {
    result$conf.int <- c(interval$low, interval$high)
    attr(result$conf.int, "conf.level") <- interval$level
  }
  result
}

# The first interval of these kinds; NULL where there is none.
interval_of <- function(inference, kinds) {
  for (kind in kinds) {
    for (interval in inference$intervals) {
      if (identical(interval$kind, kind)) {
        return(interval)
      }
    }
  }
  NULL
}

# More inference from a report: `umpc infer`. It takes no further epsilon.
infer <- function(result, arguments) {
  file <- tempfile("umpc-report-", fileext = ".json")
  on.exit(unlink(file))
  writeLines(result$json, file, useBytes = TRUE)
  jsonlite::fromJSON(
    run_umpc(c("infer", file, part_arguments(result), arguments, "--format", "json")),
    simplifyVector = FALSE
  )
}

# Which of several values of a report a result is.
part_arguments <- function(result) {
  if (is.null(result$part)) character() else c("--part", as.character(result$part))
}

umpc_test <- function(result, alternative = NULL, null = NULL) {
  if (!is.null(alternative)) {
    sides <- c("two.sided", "less", "greater")
    alternative <- match.arg(sub("-", ".", alternative, fixed = TRUE), sides)
    alternative <- sub(".", "-", alternative, fixed = TRUE)
  }
  arguments <- setting_arguments(Filter(
    Negate(is.null), list(alternative = alternative, null = null)
  ))
  with_inference(result, infer(result, arguments))
}

confint.umpc_result <- function(object, parm, level = 0.95, kind = "population", ...) {
  kind <- match.arg(kind, KINDS)
  inference <- object$report$inference
  if (level != 0.95) {
    inference <- infer(object, c("--level", number_texts(level)))
  }
  interval <- interval_of(inference, kind)
  if (is.null(interval)) {
    fail(sprintf("the report has no interval of kind '%s' at level %s", kind, format(level)))
  }
  tails <- 100 * c(1 - level, 1 + level) / 2
  matrix(
    c(interval$low, interval$high),
    nrow = 1,
    dimnames = list(names(object$estimate), paste(format(tails, digits = 3, trim = TRUE), "%"))
  )
}

print.umpc_result <- function(x, ...) {
  answers <- x$report$answers
  if (length(answers) > 0) {
    cat(sprintf("\n\t%s\n\ndata:  %s\n", x$method, x$data.name))
    for (answer in answers) {
      cat("\n")
      print(counted(answer), ...)
    }
    return(invisible(x))
  }
  usual <- x
  class(usual) <- "htest"
  lines <- utils::capture.output(print(usual, ...))
  if (isTRUE(x$p.is.below)) {
    # the least p-value that is told apart, and not the p-value itself
    lines <- sub("p-value = ", "p-value < ", lines, fixed = TRUE)
  }
  cat(lines, "95 percent intervals:", sep = "\n")
  for (interval in x$report$inference$intervals) {
    cat(sprintf(
      "  %-11s %9.5g to %9.5g  for %s\n",
      interval$kind, interval$low, interval$high, interval$covers
    ))
  }
  cat("\n")
  invisible(x)
}

plot.umpc_result <- function(x, ...) {
  if (length(x$report$answers) > 0) {
    answers <- x$report$answers
    drawn <- Filter(function(each) length(each$series) > 0, answers)
    plot(counted(c(drawn, answers)[[1]]), ...)
    return(invisible(x))
  }
  intervals <- rev(x$report$inference$intervals)
  rows <- seq_along(intervals)
  low <- vapply(intervals, function(each) each$low, 0)
  high <- vapply(intervals, function(each) each$high, 0)
  old <- graphics::par(mar = c(4, 7, 2, 1))
  on.exit(graphics::par(old))
  limits <- range(low, high, x$estimate, x$null.value)
  graphics::plot.default(
    limits, range(0.5, rows + 0.5),
    type = "n", yaxt = "n", ylab = "", xlab = names(x$estimate), main = x$method, cex.main = 0.9
  )
  if (!is.null(x$null.value)) {
    graphics::abline(v = x$null.value, lty = 2, col = "grey50")
  }
  graphics::segments(low, rows, high, rows, lwd = 5, col = "steelblue", lend = 1)
  graphics::points(rep(x$estimate, length(rows)), rows, pch = 19, col = "firebrick")
  kinds <- vapply(intervals, function(each) each$kind, "")
  graphics::axis(2, at = rows, labels = kinds, las = 1, tick = FALSE)
  invisible(x)
}

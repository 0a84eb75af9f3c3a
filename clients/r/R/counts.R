# Curves, tables and tests that a report of counts holds. They take no further epsilon.

# A number of a report, where null stands for no number.
number_or_na <- function(value) if (is.null(value)) NA_real_ else as.numeric(value)

numbers_or_na <- function(values) vapply(values, number_or_na, 0)

umpc_km <- function(result) answer_of(result, "kaplan_meier")

umpc_nelson_aalen <- function(result) answer_of(result, "nelson_aalen")

umpc_ecdf <- function(result) answer_of(result, "ecdf")

umpc_roc <- function(result) answer_of(result, "roc")

umpc_histogram <- function(result) answer_of(result, c("histogram", "contingency"))

umpc_quantiles <- function(result) answer_of(result, c("quantiles", "ecdf"))

umpc_qq <- function(result) answer_of(result, "qq")

# A test: an object of class htest.
umpc_counts_test <- function(result) {
  answer <- answer_of(result, c("logrank", "gehan", "contingency"))
  numbers <- answer$numbers
  if (!"p-value" %in% rownames(numbers)) {
    fail(sprintf("%s: %s", answer$title, utils::tail(answer$notes, 1)))
  }
  structure(
    list(
      statistic = c("X-squared" = numbers["chi-squared", "value"]),
      parameter = c(df = numbers["degrees of freedom", "value"]),
      p.value = numbers["p-value", "value"],
      method = sprintf("%s, with the noise of a private study", answer$title),
      data.name = result$data.name
    ),
    class = "htest"
  )
}

# The first answer of one of these kinds in a report.
answer_of <- function(result, kinds) {
  answers <- result$report$answers
  found <- Filter(function(each) each$kind %in% kinds, answers)
  if (length(found) == 0) {
    told <- vapply(answers, function(each) each$kind, "")
    fail(sprintf(
      "a report with %s was expected, and it has %s: run a study of this statistic",
      paste(kinds, collapse = " or "), if (length(told)) paste(told, collapse = ", ") else "none"
    ))
  }
  counted(found[[1]])
}

# One answer of a report.
counted <- function(answer) {
  structure(
    list(
      kind = answer$kind, title = answer$title, level = answer$level, notes = unlist(answer$notes),
      labels = c(answer$x_name, answer$y_name), form = answer$form,
      numbers = number_table(answer$numbers), points = point_table(answer$series)
    ),
    class = "umpc_counted"
  )
}

# One row for each number, with both ends of its intervals.
number_table <- function(numbers) {
  end <- function(kind, place) {
    vapply(numbers, function(each) {
      ends <- each$intervals[[kind]]
      if (is.null(ends)) NA_real_ else number_or_na(ends[[place]])
    }, 0)
  }
  data.frame(
    value = vapply(numbers, function(each) number_or_na(each$value), 0),
    lower = end("records", 1), upper = end("records", 2),
    population_lower = end("population", 1), population_upper = end("population", 2),
    row.names = vapply(numbers, function(each) each$name, "")
  )
}

# One row for each point of each curve.
point_table <- function(series) {
  ends <- function(one, kind, end) {
    found <- one$intervals[[kind]][[end]]
    if (is.null(found)) rep(NA_real_, length(one$x)) else numbers_or_na(found)
  }
  do.call(rbind, lapply(series, function(one) {
    data.frame(
      curve = one$name, x = numbers_or_na(one$x), value = numbers_or_na(one$value),
      label = if (length(one$labels)) unlist(one$labels) else "",
      lower = ends(one, "records", "low"), upper = ends(one, "records", "high"),
      band_lower = ends(one, "records_band", "low"), band_upper = ends(one, "records_band", "high"),
      population_lower = ends(one, "population", "low"),
      population_upper = ends(one, "population", "high")
    )
  }))
}

print.umpc_counted <- function(x, digits = 4, ...) {
  cat(sprintf("%s, intervals of %s %%\n", x$title, format(100 * x$level)))
  if (nrow(x$numbers) > 0) {
    of_population <- !all(is.na(x$numbers[c("population_lower", "population_upper")]))
    cat(
      "lower and upper are for these records",
      if (of_population) ", the others for the population", "\n",
      sep = ""
    )
    print(signif(x$numbers[if (of_population) 1:5 else 1:3], digits), ...)
  }
  if (!is.null(x$points)) {
    cat(sprintf("%d points; summary() has them\n", nrow(x$points)))
  }
  for (note in x$notes) {
    cat(note, "\n", sep = "")
  }
  invisible(x)
}

# The points of all curves, as a data frame; the numbers where there is no curve.
summary.umpc_counted <- function(object, ...) {
  if (is.null(object$points)) object$numbers else object$points
}

# Text that the fonts of every device have.
plain <- function(text) gsub("[\u2013\u2212]", "-", text)

plot.umpc_counted <- function(x, ...) {
  points <- x$points
  if (is.null(points)) {
    fail(sprintf("%s has no curve to draw", x$title))
  }
  # the caller's own titles and limits come first
  draw <- function(drawing, ...) do.call(drawing, utils::modifyList(list(...), asked))
  asked <- list(...)
  if (identical(x$form, "bars")) {
    middle <- draw(
      graphics::barplot,
      height = points$value, names.arg = plain(points$label), main = plain(x$title),
      ylab = x$labels[2], ylim = c(0, max(points$upper, points$value, 1, na.rm = TRUE)),
      col = "steelblue"
    )
    graphics::segments(middle, points$lower, middle, points$upper)
    return(invisible(x))
  }
  is_path <- identical(x$form, "path")
  curves <- split(points, factor(points$curve, unique(points$curve)))
  curves <- if (is_path) curves[1] else lapply(curves, from_start, x$kind)
  shown <- do.call(rbind, curves)
  # where few are left, the band of a hazard ends far above its curve
  top <- pmin(shown$band_upper, 2 * max(shown$value))
  draw(
    graphics::plot.default,
    x = range(shown$x), y = range(0, shown$value, top, na.rm = TRUE),
    type = "n", xlab = plain(x$labels[1]), ylab = plain(x$labels[2]), main = plain(x$title)
  )
  type <- if (is_path) "l" else "s"
  colors <- grDevices::hcl.colors(max(2, length(curves)), "Dark 2")
  for (place in seq_along(curves)) {
    one <- curves[[place]]
    graphics::lines(one$x, one$value, type = type, col = colors[place], lwd = 2)
    graphics::lines(one$x, one$band_lower, type = type, col = colors[place], lty = 2)
    graphics::lines(one$x, one$band_upper, type = type, col = colors[place], lty = 2)
  }
  if (length(curves) > 1) {
    graphics::legend(
      "topright",
      legend = plain(names(curves)), col = colors, lwd = 2, bty = "n"
    )
  }
  invisible(x)
}

# A curve of steps from its start on: survival begins at 1, all others at 0.
from_start <- function(points, kind) {
  first <- points[1, ]
  first$x <- min(0, first$x)
  first[c("value", "band_lower", "band_upper")] <- if (kind == "kaplan_meier") 1 else 0
  rbind(first, points)
}

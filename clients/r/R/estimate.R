# umpc_estimate: a private statistic over data frames, by `umpc demo` on this machine.

umpc_estimate <- function(statistic, data, columns, bounds, epsilon, label = NULL, ...) {
  name <- paste(deparse(substitute(data), width.cutoff = 60L), collapse = " ")
  sites <- if (is.data.frame(data)) list(data) else data
  check_sites(sites, c(columns, label[1]))
  folder <- tempfile("umpc-sites-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  files <- file.path(folder, sprintf("site-%d.csv", seq_along(sites)))
  for (place in seq_along(sites)) {
    write_site(sites[[place]], unique(c(columns, label[1])), files[place])
  }
  arguments <- c(
    "demo", "--format", "json", "--statistic", statistic,
    rbind("--csv", files), "--fields", paste(columns, collapse = ","),
    if (length(files) == 1 && is.null(list(...)$nodes)) c("--nodes", "1"),
    bounds_arguments(bounds, columns),
    if (!is.null(label)) c("--label", paste(label, collapse = "=")),
    setting_arguments(list(epsilon = epsilon, ...))
  )
  result_of(run_umpc(arguments), name)
}

# Stop unless the data are frames that have these columns.
check_sites <- function(sites, columns) {
  if (!is.list(sites) || length(sites) == 0 || !all(vapply(sites, is.data.frame, TRUE))) {
    fail("a data frame, or a list of one data frame for each site, was expected")
  }
  for (place in seq_along(sites)) {
    absent <- setdiff(columns, names(sites[[place]]))
    if (length(absent) > 0) {
      fail(sprintf("site %d: a column '%s' was expected, and the frame has none", place, absent[1]))
    }
  }
}

# Write the study's columns of one frame.
write_site <- function(frame, columns, file) {
  texts <- lapply(frame[columns], as_texts)
  utils::write.csv(
    data.frame(texts, check.names = FALSE), file,
    row.names = FALSE, na = "", fileEncoding = "UTF-8"
  )
}

# A column as text: numbers with all their digits, logical values as Python's data frames have them.
as_texts <- function(values) {
  if (is.factor(values)) {
    return(as.character(values))
  }
  if (is.logical(values)) {
    return(ifelse(values, "true", "false"))
  }
  if (is.numeric(values)) number_texts(values) else as.character(values)
}

# The shortest of 15 and 17 digits that is the number itself; NA stays NA.
number_texts <- function(values) {
  one <- function(value) {
    if (is.na(value)) {
      return(NA_character_)
    }
    # the session's option OutDec may be a comma
    text <- function(digits) {
      format(value, digits = digits, scientific = FALSE, trim = TRUE, decimal.mark = ".")
    }
    if (as.numeric(text(15)) == value) text(15) else text(17)
  }
  vapply(as.numeric(values), one, "", USE.NAMES = FALSE)
}

# --bounds of each column. "data" takes them from the values, which is not private.
bounds_arguments <- function(bounds, columns) {
  if (identical(bounds, "data")) {
    return(character())
  }
  absent <- setdiff(columns, names(bounds))
  if (length(absent) > 0) {
    fail(sprintf(paste(
      "bounds for '%s' were expected: write bounds = list(%s = c(LOWER, UPPER)), or its categories.",
      "They are public; bounds = \"data\" takes them from the values, which is not private"
    ), absent[1], absent[1]))
  }
  texts <- vapply(bounds[columns], function(each) {
    if (is.numeric(each)) paste(number_texts(each), collapse = ":") else paste(each, collapse = ",")
  }, "")
  c(rbind("--bounds", paste0(columns, "=", texts)))
}

# The options of further settings: edges = "all" is --edges all.
setting_arguments <- function(settings) {
  found <- character()
  for (name in names(settings)) {
    value <- settings[[name]]
    flag <- paste0("--", gsub("_", "-", if (name == "parameters") "parameter" else name))
    if (is.null(names(value))) {
      found <- c(found, flag, setting_text(value))
    } else {
      pairs <- paste0(names(value), "=", vapply(value, setting_text, ""))
      found <- c(found, rbind(flag, pairs))
    }
  }
  found
}

setting_text <- function(value) {
  paste(if (is.numeric(value)) number_texts(value) else as.character(value), collapse = ",")
}

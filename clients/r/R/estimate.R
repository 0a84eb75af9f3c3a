# umpc_estimate: a private statistic over data frames, by `umpc demo` on this machine.

umpc_estimate <- function(statistic, data, columns, bounds, epsilon, label = NULL, weight = NULL,
                          ...) {
  name <- paste(deparse(substitute(data), width.cutoff = 60L), collapse = " ")
  sites <- if (is.data.frame(data)) list(data) else data
  read <- unique(c(columns, label[[1]], weight))
  check_sites(sites, read)
  folder <- tempfile("umpc-sites-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  files <- file.path(folder, sprintf("site-%d.csv", seq_along(sites)))
  logical <- logical_columns(sites, read, bounds)
  for (place in seq_along(sites)) {
    write_site(sites[[place]], read, files[place], logical)
  }
  for (name in intersect(logical, names(bounds))) {
    bounds[[name]] <- logical_texts(bounds[[name]])
  }
  arguments <- c(
    "demo", "--format", "json", "--statistic", statistic,
    rbind("--csv", files), "--fields", quoted(columns),
    if (length(files) == 1 && is.null(list(...)$nodes)) c("--nodes", "1"),
    bounds_arguments(bounds, unique(c(columns, weight))),
    if (!is.null(weight)) c("--weight", weight),
    if (!is.null(label)) c("--label", label_argument(label, logical)),
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
write_site <- function(frame, columns, file, logical = character()) {
  texts <- lapply(frame[columns], as_texts)
  for (name in intersect(logical, columns)) {
    texts[[name]] <- logical_texts(frame[[name]])
  }
  utils::write.csv(
    data.frame(texts, check.names = FALSE), file,
    row.names = FALSE, na = "", fileEncoding = "UTF-8"
  )
}

# The columns of logical values: those that a site's frame or the bounds have as such.
logical_columns <- function(sites, columns, bounds) {
  is_one <- vapply(columns, function(name) {
    is.logical(if (is.list(bounds)) bounds[[name]]) ||
      any(vapply(sites, function(frame) is.logical(frame[[name]]), TRUE))
  }, TRUE)
  columns[is_one]
}

# Logical values, or R's words for them, as true and false everywhere: in data, categories, label.
logical_texts <- function(values) {
  texts <- as.character(values)
  words <- c("TRUE" = "true", "FALSE" = "false", "T" = "true", "F" = "false")
  ifelse(toupper(texts) %in% names(words), unname(words[toupper(texts)]), texts)
}

# COLUMN=FIRST of a public label.
label_argument <- function(label, logical) {
  first <- as_texts(label[[2]])
  if (label[[1]] %in% logical) {
    first <- logical_texts(first)
  }
  paste0(quoted(label[[1]]), "=", quoted(first))
}

# A list for the command, with each item in quotes that has a comma, an equals sign or a colon.
quoted <- function(texts) {
  special <- grepl("[,=:\"]|^\\s|\\s$", texts)
  texts[special] <- paste0("\"", gsub("\"", "\"\"", texts[special], fixed = TRUE), "\"")
  paste(texts, collapse = ",")
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
    if (is.numeric(each)) paste(number_texts(each), collapse = ":") else quoted(as_texts(each))
  }, "")
  c(rbind("--bounds", paste0(vapply(columns, quoted, ""), "=", texts)))
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
      pairs <- paste0(vapply(names(value), quoted, ""), "=", vapply(value, setting_text, ""))
      found <- c(found, rbind(flag, pairs))
    }
  }
  found
}

setting_text <- function(value) {
  paste(if (is.numeric(value)) number_texts(value) else as.character(value), collapse = ",")
}

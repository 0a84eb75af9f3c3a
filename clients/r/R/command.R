# The command `umpc`: run it, and turn its failures into R conditions.

# The program's name: the option umpc.command, else the variable UMPC_COMMAND.
umpc_command <- function() {
  getOption("umpc.command", Sys.getenv("UMPC_COMMAND", "umpc"))
}

# Run `umpc` with these arguments. Returns what it prints, one text.
run_umpc <- function(arguments) {
  output <- tempfile("umpc-output-")
  errors <- tempfile("umpc-errors-")
  on.exit(unlink(c(output, errors)))
  status <- without_r_libraries(suppressWarnings(
    system2(umpc_command(), shQuote(arguments), stdout = output, stderr = errors)
  ))
  told <- if (file.exists(errors)) readLines(errors, warn = FALSE) else character()
  if (status == 127) {
    fail(sprintf(
      "the command %s was expected and was not found: install umpc, or name it with %s",
      sQuote(umpc_command(), FALSE), "options(umpc.command = \"/path/to/umpc\")"
    ), status)
  }
  if (status != 0) {
    fail(in_r_words(error_line(told)), status)
  }
  for (line in grep("^warning: ", told, value = TRUE)) {
    warning(sub("^warning: ", "", line), call. = FALSE)
  }
  paste(readLines(output, warn = FALSE, encoding = "UTF-8"), collapse = "\n")
}

# Evaluate without LD_LIBRARY_PATH. R sets it for its own libraries, and a Python that finds another
# libpython there does not start.
without_r_libraries <- function(code) {
  before <- Sys.getenv("LD_LIBRARY_PATH", NA)
  if (!is.na(before)) {
    Sys.unsetenv("LD_LIBRARY_PATH")
    on.exit(Sys.setenv(LD_LIBRARY_PATH = before))
  }
  code
}

# The one line in which the command says why it failed.
error_line <- function(told) {
  found <- grep("^error: |^Error: ", told, value = TRUE, ignore.case = TRUE)
  line <- utils::tail(c("umpc ended without a reason", told, found), 1)
  sub("^error: ", "", line, ignore.case = TRUE)
}

# An error of the command in the words of an R user: arguments in place of options.
in_r_words <- function(line) {
  choices <- "^Invalid value for '--([a-z-]+)': '(.*)' is not one of (.*)\\.$"
  if (grepl(choices, line)) {
    name <- argument_name(sub(choices, "\\1", line))
    given <- sub(choices, "\\2", line)
    known <- gsub("'", "", strsplit(sub(choices, "\\3", line), ", ", fixed = TRUE)[[1]])
    near <- known[which.min(utils::adist(given, known))]
    return(sprintf("there is no %s '%s'; the nearest is '%s'", name, given, near))
  }
  line <- sub("^Invalid value for '--([a-z-]+)': ", "the value of --\\1 is wrong: ", line)
  line <- sub("^No such option '?--([a-z-]+)'?.*$", "umpc_estimate has no argument --\\1", line)
  line <- sub("^No such option: '?--([a-z-]+)'?.*$", "umpc_estimate has no argument --\\1", line)
  repeat {
    found <- regmatches(line, regexpr("--[a-z][a-z-]*", line))
    if (length(found) == 0) {
      return(line)
    }
    line <- sub(found, argument_name(substring(found, 3)), line, fixed = TRUE)
  }
}

# The argument of umpc_estimate for an option of the command.
argument_name <- function(option) {
  switch(option,
    csv = "data",
    fields = "columns",
    parameter = "parameters",
    gsub("-", "_", option, fixed = TRUE)
  )
}

# Stop with a condition of class umpc_error. status: the command's exit code.
fail <- function(message, status = NA_integer_) {
  stop(structure(
    class = c("umpc_error", "error", "condition"),
    list(message = message, call = NULL, status = status)
  ))
}

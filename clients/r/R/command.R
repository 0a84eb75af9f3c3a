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
    fail(error_line(told), status)
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

# Stop with a condition of class umpc_error. status: the command's exit code.
fail <- function(message, status = NA_integer_) {
  stop(structure(
    class = c("umpc_error", "error", "condition"),
    list(message = message, call = NULL, status = status)
  ))
}

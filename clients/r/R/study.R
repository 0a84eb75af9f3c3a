# Studies between the sites' nodes, and reports that are stored already.

umpc_study <- function(file) {
  result_of(run_umpc(c("study", "run", path.expand(file), "--format", "json")), file)
}

umpc_report <- function(file) {
  text <- paste(readLines(file, warn = FALSE, encoding = "UTF-8"), collapse = "\n")
  result_of(text, file)
}

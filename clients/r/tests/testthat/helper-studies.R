# Studies over all sets at epsilon = 1e9, where the noise is 0. They need the command `umpc`.

LOUD <- 1e9

skip_without_umpc <- function() {
  skip_if(
    Sys.getenv("UMPC_COMMAND") == "" && Sys.which("umpc") == "",
    "the command umpc is not installed; `make test-r` sets it"
  )
}

shipped <- function(file) system.file("extdata", file, package = "umpc", mustWork = TRUE)

sites <- function() {
  list(north = read.csv(shipped("north.csv")), south = read.csv(shipped("south.csv")))
}

pooled <- function() do.call(rbind, sites())

BOUNDS <- list(
  age = c(0, 127), balance = c(-10000, 110000, 0.01), days = c(0, 400), died = c("no", "yes")
)

exact <- function(statistic, columns, ...) {
  skip_without_umpc()
  umpc_estimate(
    statistic, sites(), columns,
    bounds = BOUNDS[intersect(columns, names(BOUNDS))], epsilon = LOUD, edges = "all", ...
  )
}

# A program in place of `umpc`: it keeps its arguments, and prints a file.
stand_in <- function(folder, prints, status = 0, says = "") {
  program <- file.path(folder, "umpc")
  writeLines(c(
    "#!/bin/sh",
    sprintf("printf '%%s\\n' \"$@\" > '%s'", file.path(folder, "arguments")),
    sprintf("printf '%%s' \"$LD_LIBRARY_PATH\" > '%s'", file.path(folder, "libraries")),
    if (nzchar(says)) sprintf("echo '%s' >&2", says),
    sprintf("cat '%s'", prints),
    sprintf("exit %d", status)
  ), program)
  Sys.chmod(program, "755")
  program
}

report <- function(folder, estimate = "0.25", test = "null") {
  file <- file.path(folder, "report.json")
  writeLines(sprintf(
    paste0(
      '{"schema": "umpc-report-1", "statistic": "kendall_tau", "estimate": %s, "epsilon": 1,',
      '"delta": 0, "nodes": 2, "records": 9, "note": "drowned", "inference": {"test": %s,',
      '"intervals": [{"low": 0.1, "high": 0.4, "level": 0.95, "kind": "records", "covers": "x"}],',
      '"errors": []}}'
    ), estimate, test
  ), file)
  file
}

with_stand_in <- function(code, ...) {
  folder <- tempfile("stand-in-")
  dir.create(folder)
  old <- options(umpc.command = stand_in(folder, report(folder), ...))
  on.exit({
    options(old)
    unlink(folder, recursive = TRUE)
  })
  code(folder)
}

test_that("a study and a report are results of one class", {
  with_stand_in(function(folder) {
    result <- umpc_study("my study.toml")
    expect_equal(file.size(file.path(folder, "libraries")), 0)
    asked <- readLines(file.path(folder, "arguments"))
    expect_equal(asked, c("study", "run", "my study.toml", "--format", "json"))
    stored <- umpc_report(file.path(folder, "report.json"))
    expect_s3_class(stored, c("umpc_result", "htest"), exact = TRUE)
    expect_equal(result$estimate, c(kendall_tau = 0.25))
    expect_equal(stored$report, result$report)
    expect_null(result$p.value)
    expect_equal(as.vector(result$conf.int), c(0.1, 0.4))
    expect_output(print(result), "records")
    expect_error(confint(result), "no interval of kind 'population'", class = "umpc_error")
    expect_error(umpc_report(report(folder, "null")), "no value: drowned", class = "umpc_error")
  })
})

test_that("a p-value below the least one that is told apart is shown as below it", {
  folder <- tempfile("least-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  test <- paste0(
    '{"p_value": 1e-12, "alternative": "two-sided", "null": 0, "hypothesis": "x", "law": "y"%s}'
  )
  least <- umpc_report(report(folder, test = sprintf(test, ', "is_below": true')))
  expect_equal(least$p.value, 1e-12)
  expect_output(print(least), "p-value < 1e-12")
  former <- umpc_report(report(folder, test = sprintf(test, "")))
  expect_output(print(former), "p-value = 1e-12")
})

test_that("frames, bounds and settings become the options of umpc demo", {
  frame <- data.frame(
    x = c(0.1, 1 / 3, 1e-05, NA, 1e5), y = factor(c("a", "b", "a", "a", NA)),
    z = c(TRUE, FALSE, NA, TRUE, TRUE), unused = 1:5
  )
  with_stand_in(function(folder) {
    umpc_estimate(
      "kendall_tau", frame, c("x", "y", "z"),
      bounds = list(x = c(0, 1e6, 1e-5), y = c("a", "b"), z = c("false", "true")),
      epsilon = 0.5, parameters = list(cells = 6), max_colluding = 1
    )
    asked <- readLines(file.path(folder, "arguments"))
    pairs <- matrix(asked[-(1:3)], nrow = 2)
    options <- split(pairs[2, ], pairs[1, ])
    expect_equal(asked[1:3], c("demo", "--format", "json"))
    expect_equal(options[["--bounds"]], c("x=0:1000000:0.00001", "y=a,b", "z=false,true"))
    expect_equal(options[["--fields"]], "x,y,z")
    expect_equal(options[["--nodes"]], "1")
    expect_equal(options[["--parameter"]], "cells=6")
    expect_equal(options[["--max-colluding"]], "1")
    expect_equal(options[["--epsilon"]], "0.5")
    expect_false(file.exists(options[["--csv"]]))
  })
  expect_equal(umpc:::number_texts(c(0.1, 1e-05, 1e5, NA)), c("0.1", "0.00001", "100000", NA))
  expect_identical(as.numeric(umpc:::number_texts(1 / 3)), 1 / 3)
  before <- options(OutDec = ",")
  expect_equal(umpc:::number_texts(c(1.5, 1 / 3)), c("1.5", "0.33333333333333331"))
  options(before)
  expect_equal(umpc:::as_texts(frame$z), c("true", "false", NA, "true", "true"))
})

test_that("failures are conditions of one class, with the command's line and exit code", {
  with_stand_in(status = 21, says = "error: the budget is spent", code = function(folder) {
    failure <- tryCatch(umpc_study("s.toml"), umpc_error = identity)
    expect_equal(conditionMessage(failure), "the budget is spent")
    expect_equal(failure$status, 21)
  })
  with_stand_in(says = "warning: 2 value(s) beyond the bounds", code = function(folder) {
    expect_warning(umpc_study("s.toml"), "^2 value")
  })
  old <- options(umpc.command = "/nowhere/umpc")
  on.exit(options(old))
  expect_error(umpc_study("s.toml"), "install umpc", class = "umpc_error")
  frame <- data.frame(x = 1:3, y = 3:1)
  expect_error(
    umpc_estimate("kendall_tau", frame, c("x", "z"), list(), 1), "'z' was expected",
    class = "umpc_error"
  )
  expect_error(
    umpc_estimate("kendall_tau", frame, c("x", "y"), list(x = 1:2), 1), "bounds for 'y'",
    class = "umpc_error"
  )
  expect_error(umpc_estimate("kendall_tau", 1:3, "x", list(), 1), "a data frame")
})

test_that("a logical has one spelling in data, categories and label", {
  frame <- data.frame(x = 1:4, y = c(TRUE, FALSE, NA, TRUE))
  words <- data.frame(x = 1:4, y = factor(c("TRUE", "FALSE", "TRUE", "TRUE")))
  for (bounds in list(c(FALSE, TRUE), c("FALSE", "TRUE"), c("false", "true"), c("F", "T"))) {
    with_stand_in(function(folder) {
      umpc_estimate(
        "duplicate_pair_ratio", list(frame, words), "y",
        bounds = list(y = bounds), epsilon = 1
      )
      expect_true("y=false,true" %in% readLines(file.path(folder, "arguments")))
    })
  }
  for (label in list(c("y", TRUE), list("y", TRUE), c("y", "true"))) {
    with_stand_in(function(folder) {
      umpc_estimate("auc", frame, "x", bounds = list(x = c(0, 9)), epsilon = 1, label = label)
      expect_true("y=true" %in% readLines(file.path(folder, "arguments")))
    })
  }
  file <- tempfile()
  umpc:::write_site(words, "y", file, "y")
  expect_equal(readLines(file), c('"y"', '"true"', '"false"', '"true"', '"true"'))
})

test_that("names and levels with commas reach the command whole", {
  frame <- data.frame(1:3, factor(c("lo,1", "mid", "hi"), c("lo,1", "mid", "hi")))
  names(frame) <- c("a b,c=d", "level: \"x\"")
  with_stand_in(function(folder) {
    umpc_estimate(
      "kendall_tau", frame, names(frame),
      bounds = stats::setNames(list(c(0, 9), levels(frame[[2]])), names(frame)), epsilon = 1
    )
    asked <- readLines(file.path(folder, "arguments"))
    expect_true("\"a b,c=d\",\"level: \"\"x\"\"\"" %in% asked)
    expect_true("\"a b,c=d\"=0:9" %in% asked)
    expect_true("\"level: \"\"x\"\"\"=\"lo,1\",mid,hi" %in% asked)
  })
})

test_that("failures speak of arguments, and not of the command's options", {
  said <- umpc:::in_r_words(paste(
    "Invalid value for '--statistic': 'kendal_tau' is not one of",
    "'auc', 'kendall_tau', 'gini_mean_difference'."
  ))
  expect_equal(said, "there is no statistic 'kendal_tau'; the nearest is 'kendall_tau'")
  said <- umpc:::in_r_words("Invalid value for '--max-colluding': 'x' is not a valid integer.")
  expect_equal(said, "the value of max_colluding is wrong: 'x' is not a valid integer.")
  said <- umpc:::in_r_words("No such option: --strata (Possible options: --protocol)")
  expect_equal(said, "umpc_estimate has no argument strata")
  expect_equal(umpc:::in_r_words("leave --csv out"), "leave data out")
})

test_that("every field of a result is one of R's htest, in R's vocabulary", {
  folder <- tempfile("htest-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  for (side in c("two-sided", "greater", "less")) {
    test <- sprintf(
      '{"p_value": 0.04, "alternative": "%s", "null": 0, "hypothesis": "x", "law": "y"}', side
    )
    result <- umpc_report(report(folder, test = test))
    theirs <- cor.test(1:9, c(2, 1, 4, 3, 6, 5, 8, 7, 9), method = "kendall")
    own <- c("report", "json", "p.is.below", "hypothesis")
    expect_true(all(setdiff(names(result), own) %in% c(names(theirs), "conf.int")))
    expect_true(result$alternative %in% c("two.sided", "greater", "less"))
    expect_true(is.numeric(result$p.value) && is.numeric(result$estimate))
    expect_equal(names(result$null.value), names(result$estimate))
    expect_true(is.character(result$method) && is.character(result$data.name))
    expect_length(result$conf.int, 2)
    expect_equal(attr(result$conf.int, "conf.level"), 0.95)
    words <- c("two-sided" = "not equal to 0", greater = "greater than 0", less = "less than 0")
    expect_output(print(result), paste("true kendall_tau is", words[[side]]))
  }
})

test_that("a study of several values is a list with a result for each", {
  folder <- tempfile("several-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  file <- file.path(folder, "several.json")
  writeLines(paste0(
    '{"schema": "umpc-report-1", "statistic": "tau by sex", "estimate": null, "epsilon": 2,',
    '"delta": 0, "nodes": 2, "records": 9, "note": "several", "parts": [',
    '{"statistic": "tau", "stratum": "f", "epsilon": 1, "estimate": 0.5, "note": ""},',
    '{"statistic": "tau", "stratum": "m", "epsilon": 1, "estimate": null, "note": "drowned"}],',
    '"inference": {"test": null, "intervals": [], "errors": []}, "inference_of_parts": [',
    '{"test": null, "intervals": [{"low": 0.1, "high": 0.9, "level": 0.95, "kind": "records",',
    '"covers": "x"}], "errors": []}, {"test": null, "intervals": [], "errors": []}]}'
  ), file)
  results <- umpc_report(file)
  expect_s3_class(results, "umpc_results")
  expect_equal(names(results), c("tau, f", "tau, m"))
  expect_equal(unname(results[["tau, f"]]$estimate), 0.5)
  expect_equal(as.vector(confint(results[[1]], kind = "records")), c(0.1, 0.9))
  expect_true(is.na(results[["tau, m"]]$estimate))
  expect_output(print(results), "drowned")
  with_stand_in(function(other) {
    try(umpc_test(results[[2]], alternative = "less"), silent = TRUE)
    asked <- readLines(file.path(other, "arguments"))
    expect_equal(asked[3:6], c("--part", "2", "--alternative", "less"))
  })
})

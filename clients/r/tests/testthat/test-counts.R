# Curves and tests of a stored report of counts, which umpc made from R's lung, with noise; and of
# studies at epsilon = 1e9, whose numbers are those of R.

stored <- function() {
  umpc_report(testthat::test_path("counts.json"))
}

# The same report as of a study in which a person may have several records.
of_persons <- function() {
  result <- stored()
  why <- "a person may have several records: no interval for the population and no p-value"
  result$report$answers <- lapply(result$report$answers, function(answer) {
    only <- function(each) {
      kinds <- intersect(names(each$intervals), c("records", "records_band"))
      each$intervals <- each$intervals[kinds]
      each
    }
    answer$numbers <- Filter(function(each) each$name != "p-value", lapply(answer$numbers, only))
    answer$series <- lapply(answer$series, only)
    answer$notes <- c(answer$notes, why)
    answer
  })
  result
}

# The two ends of the drawing's axes after a plot; `plot` must not warn.
drawn <- function(code) {
  file <- tempfile(fileext = ".pdf")
  grDevices::pdf(file)
  on.exit({
    grDevices::dev.off()
    unlink(file)
  })
  expect_silent(code)
  graphics::par("usr")
}

test_that("a report of counts is a curve with numbers, points and a picture", {
  curve <- umpc_km(stored())
  expect_s3_class(curve, "umpc_counted")
  points <- summary(curve)
  expect_true(all(c("lower", "upper", "band_lower") %in% names(points)))
  expect_true(all(points$lower <= points$value & points$value <= points$upper))
  expect_true(all(points$population_lower <= points$lower))
  for (one in split(points, points$curve)) {
    expect_true(all(diff(one$value) <= 0))
  }
  expect_true(any(grepl("median", rownames(curve$numbers))))
  expect_output(print(curve), "Kaplan.Meier curve of time.*population_lower.*22 points")
})

test_that("a curve is drawn from its start on, with the caller's own titles", {
  ends <- drawn(plot(umpc_km(stored())))
  expect_true(ends[1] < 0 && ends[2] > 1099 && ends[3] < 0 && ends[4] > 1)
  ends <- drawn(plot(umpc_km(stored()), main = "own", xlab = "days", xlim = c(0, 500)))
  expect_lt(ends[2], 600)
})

test_that("a test is of class htest", {
  test <- umpc_counts_test(stored())
  expect_s3_class(test, "htest")
  expect_output(print(test), "log-rank test.*df = 1, p-value = ")
  expect_true(test$p.value > 0 && test$p.value <= 1)
})

test_that("a result of counts prints and draws all that its report says", {
  expect_output(print(stored()), "Kaplan.Meier curve of time.*log-rank test of time.*p-value")
  expect_gt(drawn(plot(stored()))[2], 1099)
  # a report of a test has its curves behind it
  other <- stored()
  other$report$answers <- rev(other$report$answers)
  expect_gt(drawn(plot(other))[2], 1099)
})

test_that("where a person has several records, nothing that needs independent ones is shown", {
  curve <- umpc_km(of_persons())
  shown <- capture.output(print(curve))
  expect_false(any(grepl("population_lower", shown)))
  expect_true(any(grepl("lower +upper$", shown)) && any(grepl("no p-value", shown)))
  expect_true(all(is.na(summary(curve)$population_lower)))
  expect_true(all(is.finite(summary(curve)$lower)))
  expect_error(umpc_counts_test(of_persons()), "no p-value", class = "umpc_error")
})

test_that("a report without this statistic says which it has", {
  expect_error(umpc_roc(stored()), "with roc was expected, and it has kaplan_meier, logrank",
    class = "umpc_error"
  )
  expect_error(umpc_qq(stored()), "with qq was expected", class = "umpc_error")
})

# A study of counts over both sites, with a bin for each value.
counts_of <- function(statistic, columns, ...) {
  skip_without_umpc()
  bounds <- c(BOUNDS, list(group = c("case", "control")))
  umpc_estimate(statistic, sites(), columns, bounds[columns], epsilon = LOUD, ...)
}

test_that("survival in two groups is that of survfit, and its test that of survdiff", {
  skip_if_not_installed("survival")
  result <- counts_of("kaplan_meier", c("days", "died", "group"))
  own <- pooled()
  formula <- survival::Surv(days, died == "yes") ~ group
  theirs <- summary(survival::survfit(formula, data = own))
  points <- summary(umpc_km(result))
  mine <- points$value[match(
    paste(sub("group=", "", theirs$strata), theirs$time),
    paste(sub("group ", "", points$curve), points$x)
  )]
  expect_equal(mine, theirs$surv, tolerance = 1e-9)
  # the first time with S <= 1/2; survfit takes a later one where S is 1/2 for a while
  late <- theirs$surv < 0.5 + 1e-9
  first <- tapply(theirs$time[late], theirs$strata[late], min)
  medians <- umpc_km(result)$numbers[c("median, group case", "median, group control"), "value"]
  expect_equal(medians, as.vector(first))
  test <- umpc_counts_test(result)
  expect_equal(
    unname(test$statistic), survival::survdiff(formula, data = own)$chisq,
    tolerance = 1e-6
  )
})

test_that("a cumulative hazard is that of survfit, and is drawn from 0 on", {
  skip_if_not_installed("survival")
  curve <- umpc_nelson_aalen(counts_of("nelson_aalen", c("days", "died")))
  theirs <- summary(survival::survfit(survival::Surv(days, died == "yes") ~ 1, data = pooled()))
  points <- summary(curve)
  mine <- points$value[match(theirs$time, points$x)]
  expect_equal(mine, theirs$cumhaz, tolerance = 1e-9)
  ends <- drawn(plot(curve))
  expect_true(ends[3] < 0 && ends[4] > max(theirs$cumhaz))
})

test_that("a distribution, its quartiles and a table are those of R", {
  own <- pooled()
  curve <- umpc_ecdf(counts_of("ecdf", "age"))
  points <- summary(curve)
  expect_equal(points$value, stats::ecdf(own$age)(points$x), tolerance = 1e-9)
  shares <- c("first quartile" = 0.25, median = 0.5, "third quartile" = 0.75)
  expect_equal(
    curve$numbers[names(shares), "value"], unname(quantile(own$age, shares, type = 1))
  )
  ends <- drawn(plot(curve))
  expect_true(ends[3] < 0 && ends[4] > 1)

  result <- counts_of("contingency", c("died", "group"))
  table <- table(own$died, own$group)
  expect_equal(summary(umpc_histogram(result))$value, as.vector(t(table)), tolerance = 1e-9)
  theirs <- suppressWarnings(chisq.test(table, correct = FALSE))
  test <- umpc_counts_test(result)
  expect_equal(unname(test$statistic), unname(theirs$statistic), tolerance = 1e-6)
  expect_equal(unname(test$parameter), unname(theirs$parameter))
  expect_gte(drawn(plot(umpc_histogram(result)))[4], max(table))
})

test_that("an ROC curve has the area of wilcox.test, and numbers alone have no curve", {
  own <- pooled()
  curve <- umpc_roc(counts_of("roc", c("age", "died")))
  cases <- own$age[own$died == "yes"]
  controls <- own$age[own$died == "no"]
  theirs <- wilcox.test(cases, controls)$statistic / (length(cases) * length(controls))
  expect_equal(curve$numbers["area under the curve", "value"], unname(theirs), tolerance = 1e-9)
  expect_gt(drawn(plot(curve))[4], 1)

  numbers <- umpc_quantiles(counts_of("quantiles", "age"))
  expect_equal(summary(numbers), numbers$numbers)
  expect_error(plot(numbers), "has no curve to draw", class = "umpc_error")
})

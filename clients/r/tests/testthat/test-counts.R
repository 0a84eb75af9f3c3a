# Curves and tests of a stored report of counts; its numbers were computed by umpc from R's lung.

stored <- function() {
  umpc_report(testthat::test_path("counts.json"))
}

test_that("a report of counts is a curve with numbers, points and a picture", {
  curve <- umpc_km(stored())
  expect_s3_class(curve, "umpc_counted")
  expect_true(all(c("lower", "upper", "band_lower") %in% names(summary(curve))))
  expect_true(all(diff(summary(curve)$value[1:11]) <= 0))
  expect_true(any(grepl("median", rownames(curve$numbers))))
  expect_output(print(curve), "Kaplan.Meier curve of time")
  file <- tempfile(fileext = ".pdf")
  grDevices::pdf(file)
  on.exit(unlink(file))
  suppressWarnings(plot(curve)) # the font of a PDF may lack a dash
  grDevices::dev.off()
  expect_gt(file.size(file), 1000)
})

test_that("a test is of class htest", {
  test <- umpc_counts_test(stored())
  expect_s3_class(test, "htest")
  expect_output(print(test), "log-rank test")
  expect_true(test$p.value > 0 && test$p.value <= 1)
})

test_that("a report without this statistic says which it has", {
  expect_error(umpc_roc(stored()), "with roc was expected, and it has kaplan_meier, logrank",
    class = "umpc_error"
  )
})

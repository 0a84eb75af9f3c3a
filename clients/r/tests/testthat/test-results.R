test_that("R finds the numbers of Python and of umpc demo, and those of cor.test", {
  expected <- jsonlite::fromJSON(shipped("expected.json"))
  result <- exact("kendall_tau", c("age", "balance"))
  expect_s3_class(result, "htest")
  expect_equal(unname(result$estimate), expected$estimate, tolerance = 1e-12)
  expect_equal(result$p.value, expected$p_value, tolerance = 1e-12)
  expect_equal(as.vector(result$conf.int), expected$population, tolerance = 1e-12)
  for (kind in c("noise", "records", "population", "hoeffding")) {
    expect_equal(as.vector(confint(result, kind = kind)), expected[[kind]], tolerance = 1e-12)
  }

  own <- pooled()
  theirs <- cor.test(own$age, own$balance, method = "kendall", exact = TRUE)
  expect_equal(unname(result$estimate), unname(theirs$estimate), tolerance = 1e-9)
  expect_equal(result$p.value, theirs$p.value, tolerance = 1e-6)
  greater <- umpc_test(result, alternative = "greater")
  theirs <- cor.test(own$age, own$balance, method = "kendall", alternative = "greater", exact = TRUE)
  expect_equal(greater$p.value, theirs$p.value, tolerance = 1e-6)
  expect_equal(greater$alternative, "greater")

  shorter <- confint(result, level = 0.8)
  expect_equal(colnames(shorter), c("10 %", "90 %"))
  expect_true(shorter[1] > expected$population[1] && shorter[2] < expected$population[2])
  expect_output(print(result), "p-value = 5.082e-06")
  expect_output(print(result), "population +0.0448")
  grDevices::pdf(NULL)
  expect_invisible(plot(result))
  grDevices::dev.off()
})

test_that("the AUC and its p-value are those of wilcox.test", {
  result <- exact("auc", "balance", label = c("group", "case"))
  own <- pooled()
  cases <- own$balance[own$group == "case"]
  controls <- own$balance[own$group == "control"]
  theirs <- wilcox.test(cases, controls, exact = TRUE)
  pairs <- length(cases) * length(controls)
  expect_equal(unname(result$estimate), unname(theirs$statistic) / pairs, tolerance = 1e-9)
  expect_equal(result$p.value, theirs$p.value, tolerance = 1e-6)
})

test_that("the concordance index is that of the package survival", {
  skip_if_not_installed("survival")
  result <- exact("concordance_index", c("age", "days", "died"))
  theirs <- survival::concordance(
    survival::Surv(days, died == "yes") ~ age,
    data = pooled(), reverse = TRUE
  )
  expect_equal(unname(result$estimate), theirs$concordance, tolerance = 1e-9)
  expect_null(result$p.value)
})

test_that("a difference of two scores and a weighted tau are those by hand", {
  own <- pooled()
  result <- exact("tau_difference", c("age", "balance", "days"))
  taus <- vapply(c("age", "balance"), function(name) {
    signs <- sign(outer(own[[name]], own[[name]], "-")) * sign(outer(own$days, own$days, "-"))
    mean(signs[upper.tri(signs)])
  }, 0)
  expect_equal(unname(result$estimate), unname(taus[1] - taus[2]), tolerance = 1e-9)
  expect_true(result$p.value > 0 && result$p.value <= 1)
  result <- umpc_estimate(
    "kendall_tau", sites(), c("age", "balance"),
    bounds = BOUNDS[c("age", "balance", "days")], epsilon = LOUD, edges = "all", weight = "days"
  )
  signs <- sign(outer(own$age, own$age, "-")) * sign(outer(own$balance, own$balance, "-"))
  pairs <- outer(own$days, own$days)
  upper <- upper.tri(signs)
  expected <- sum((signs * pairs)[upper]) / sum(pairs[upper])
  expect_equal(unname(result$estimate), expected, tolerance = 1e-9)
})

test_that("the difference of two AUCs is that of the package pROC", {
  skip_if_not_installed("pROC")
  result <- exact("auc_difference", c("age", "balance", "died"))
  own <- pooled()
  curve <- function(name) pROC::roc(own$died, own[[name]], levels = c("no", "yes"), direction = "<")
  theirs <- pROC::auc(curve("age")) - pROC::auc(curve("balance"))
  expect_equal(unname(result$estimate), as.numeric(theirs), tolerance = 1e-9)
})

test_that("logicals, and levels and columns with commas, give the values of R", {
  skip_without_umpc()
  frame <- data.frame(y = rep(c(TRUE, FALSE), c(20, 12)))
  pairs <- outer(frame$y, frame$y, "==")
  result <- umpc_estimate(
    "duplicate_pair_ratio", frame, "y", list(y = c(FALSE, TRUE)),
    epsilon = LOUD, edges = "all"
  )
  expect_equal(unname(result$estimate), mean(pairs[upper.tri(pairs)]), tolerance = 1e-9)
  own <- data.frame(
    "a b,c=d" = c(1, 2, 3, 4, 5, 6), other = c(2, 1, 4, 3, 6, 5),
    level = factor(c("mid", "lo,1", "hi", "mid", "hi", "mid"), c("lo,1", "mid", "hi")),
    check.names = FALSE
  )
  columns <- c("a b,c=d", "other")
  bounds <- stats::setNames(list(c(0, 9), c(0, 9)), columns)
  result <- umpc_estimate("kendall_tau", own, columns, bounds, epsilon = LOUD, edges = "all")
  theirs <- cor.test(own[[1]], own[[2]], method = "kendall", exact = TRUE)
  expect_equal(unname(result$estimate), unname(theirs$estimate), tolerance = 1e-9)
  pairs <- outer(as.character(own$level), as.character(own$level), "==")
  result <- umpc_estimate(
    "duplicate_pair_ratio", own, "level", list(level = levels(own$level)),
    epsilon = LOUD, edges = "all"
  )
  expect_equal(unname(result$estimate), mean(pairs[upper.tri(pairs)]), tolerance = 1e-9)
  expect_error(
    umpc_estimate("kendal_tau", own, "level", list(level = levels(own$level)), 1),
    "there is no statistic 'kendal_tau'; the nearest is 'kendall_tau'", class = "umpc_error"
  )
})

test_that("a report of all pairs of columns is a matrix, with the p-values of p.adjust", {
  skip_without_umpc()
  frames <- sites()
  result <- umpc_estimate(
    "kendall_tau", frames, c("age", "balance", "days"), BOUNDS[c("age", "balance", "days")],
    epsilon = LOUD, protocol = "vector", noise = "laplace", matrix = TRUE, edges = "all"
  )
  found <- umpc_matrix(result)
  own <- pooled()[c("age", "balance", "days")]
  expect_equal(found$values, cor(own, method = "kendall"), tolerance = 1e-9)
  upper <- upper.tri(found$values)
  expect_equal(found$holm[upper], p.adjust(found$p_values[upper], "holm"), tolerance = 1e-9)
  expect_true(isSymmetric(found$nearest) && all(diag(found$nearest) == 1))
  expect_output(print(found), "Holm")
  grDevices::pdf(NULL)
  expect_invisible(plot(found))
  grDevices::dev.off()
  expect_error(umpc_matrix(exact("kendall_tau", c("age", "balance"))), class = "umpc_error")
})

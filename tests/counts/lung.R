# What R's survival, stats and pROC say about lung: `Rscript lung.R > lung_by_r.json`, in this folder.
suppressMessages({
  library(survival)
  library(pROC)
  library(jsonlite)
})
lung <- read.csv("lung.csv")
lung$event <- lung$status - 1
lung$old <- as.integer(lung$age >= 65)
fit <- survfit(Surv(time, event) ~ 1, lung)
at <- summary(fit)
both <- survfit(Surv(time, event) ~ old, lung)
means <- summary(both, rmean = 1022)$table
table <- table(lung$age >= 60, lung$event)
cat(toJSON(list(
  time = at$time, surv = at$surv, cumhaz = at$cumhaz,
  medians = unname(c(summary(fit)$table["median"], means[, "median"])),
  means = unname(c(summary(fit, rmean = 1022)$table["rmean"], means[, "rmean"])),
  logrank = survdiff(Surv(time, event) ~ old, lung)$chisq,
  area = as.numeric(auc(roc(lung$event, lung$age, direction = "<", quiet = TRUE))),
  quartiles = unname(quantile(lung$age, c(0.25, 0.5, 0.75), type = 1)),
  chi_squared = unname(chisq.test(table, correct = FALSE)$statistic)
), digits = 14))

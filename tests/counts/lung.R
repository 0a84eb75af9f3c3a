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
areas <- lapply(c("age", "time"), function(score) {
  roc(lung$event, lung[[score]], direction = "<", quiet = TRUE)
})
delong <- roc.test(areas[[1]], areas[[2]], method = "delong", paired = TRUE)
table <- table(lung$age >= 60, lung$event)
cat(toJSON(list(
  time = at$time, surv = at$surv, cumhaz = at$cumhaz,
  medians = unname(c(summary(fit)$table["median"], means[, "median"])),
  means = unname(c(summary(fit, rmean = 1022)$table["rmean"], means[, "rmean"])),
  logrank = survdiff(Surv(time, event) ~ old, lung)$chisq,
  area = as.numeric(areas[[1]]$auc),
  scores = sort(unique(lung$age)),
  sensitivities = head(areas[[1]]$sensitivities, -1),
  specificities = head(areas[[1]]$specificities, -1),
  difference = unname(delong$estimate[1] - delong$estimate[2]),
  delong = unname(delong$p.value),
  quartiles = unname(quantile(lung$age, c(0.25, 0.5, 0.75), type = 1)),
  chi_squared = unname(chisq.test(table, correct = FALSE)$statistic)
), digits = 14))

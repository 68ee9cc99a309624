package health

// wearRules judge the endurance, which every kind of solid-state drive can report as a percentage.
var wearRules = []Rule{
	{
		Code:    "WearUsed",
		Suspect: "the percentage used of the rated endurance >= {wearUsed}",
		Advice:  "The flash is worn out: plan the replacement.",
		Source:  "NVM Express base specification, log 02h; ACS-4 device statistics page 7; SBC-4 log page 11h. 100 % is the rating, not the end: never BAD by itself",
		check: func(l *look) *hit {
			if used := l.counters[keyPercentUsed]; used >= l.th.WearUsed {
				return suspect(used, "%d %% of the rated endurance used", used)
			}
			return nil
		},
	},
	{
		Code:    "WearForecast",
		Suspect: "the endurance runs out in less than {wearOutDays} days at the pace of the history",
		Advice:  "Plan the replacement, or find out who writes so much.",
		Source:  "percentage used and bytes written over the last 90 days",
		check: func(l *look) *hit {
			w := Forecast(l.ev, l.History, l.now)
			if w == nil || w.DaysLeft == nil || *w.DaysLeft >= float64(l.th.WearOutDays) {
				return nil
			}
			return suspect(l.counters[keyPercentUsed], "endurance runs out in %.0f days (%s)", *w.DaysLeft, w.ForecastBasis)
		},
	},
}

package health

// wearRules judge the endurance, which every kind of solid-state drive can report as a percentage.
var wearRules = []Rule{
	{
		Code:    "WearUsed",
		Suspect: "the percentage used of the rated endurance >= {wearUsed}, or, where the drive does not report it, an attribute that says so, believed by its family, its worst value and the erase cycles",
		Advice:  "The drive works, but its flash is nearly worn out. Plan its replacement.",
		Source:  "NVM Express base specification, log 02h; ACS-4 device statistics page 7; SBC-4 log page 11h. 100 % is the rating, not the end of the drive: never BAD on its own",
		check: func(l *look) *hit {
			w, ok := l.wear()
			if !ok || w.used < l.th.WearUsed {
				return nil
			}
			if l.ev.NVMe != nil {
				return suspect(w.used, "%s, %d %% of the spare left", w.says, l.ev.NVMe.AvailableSpare)
			}
			return suspect(w.used, "%s", w.says)
		},
	},
	{
		Code:    "WearForecast",
		Suspect: "the endurance runs out in less than {wearOutDays} days at the pace of the history, and is not used up yet (see WearUsed)",
		Advice:  "Plan the replacement of the drive, or find the program that writes so much.",
		Source:  "percentage used and bytes written over the last 90 days",
		check: func(l *look) *hit {
			w := Forecast(l.ev, l.History, l.now)
			if w == nil || uint64(w.PercentUsed) >= l.th.WearUsed || w.DaysLeft == nil || *w.DaysLeft >= float64(l.th.WearOutDays) {
				return nil
			}
			return suspect(l.counters[keyPercentUsed], "endurance runs out in %.0f days (%s)", *w.DaysLeft, w.ForecastBasis)
		},
	},
}

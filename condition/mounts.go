package condition

import "github.com/drivebay/drivebay"

var mountRules = []Rule{
	{
		Section: OnMount, Reason: "VolumeUnmounted", Severity: drivebay.SeverityInaccessible,
		When: "a path at which the volume is published is not a mount of the volume, is hidden by another mount, or shows a device that is gone",
		Says: "which path, and what is mounted there instead", Next: "Mount it again with `drivebay heal {volume}`; a container sees the volume after its next start. Data written to the path meanwhile is not on the volume.",
		Source: kepCodes + "; " + seedNode + " step 4",
		check: func(l *look) *hit {
			return unmounted(l.Mount, "target", func(m *drivebay.MountFacts) *drivebay.PathFacts { return m.Target })
		},
	},
	{
		Section: OnMount, Reason: "VolumeUnmounted", Severity: drivebay.SeverityDegraded,
		When: "the staging path is not a mount of the volume, is hidden by another mount, or shows a device that is gone",
		Says: "which path, and what is mounted there instead", Next: "Stage it again with `drivebay heal {volume}`. Pods that use the volume keep it; other pods cannot get it until then.",
		Source: kepCodes + "; " + seedNode + " step 3",
		check: func(l *look) *hit {
			return unmounted(l.Mount, "staging", func(m *drivebay.MountFacts) *drivebay.PathFacts { return m.Staging })
		},
	},
	{
		Section: OnMount, Reason: "PathUnreadable", Severity: drivebay.SeverityInaccessible,
		When: "reading the path at which the volume is published fails",
		Says: "which path, and the kernel's error", Next: evacuate,
		Source: seedNode + " step 5",
		check: func(l *look) *hit {
			if l.Mount == nil || l.Mount.Target == nil || l.Mount.Target.ReadError == "" {
				return nil
			}
			t := l.Mount.Target
			return say(nil, "reading %s fails: %s", drivebay.PlainText(t.Path, drivebay.MaxConditionText/2), t.ReadError)
		},
	},
}

func unmounted(m *drivebay.MountFacts, what string, which func(*drivebay.MountFacts) *drivebay.PathFacts) *hit {
	if m == nil {
		return nil
	}
	p := which(m)
	switch {
	case p == nil || p.Mounted:
		return nil
	case p.Dead:
		return say(nil, "the %s path %s shows a device that is gone", what, drivebay.PlainText(p.Path, drivebay.MaxConditionText/2))
	case p.Other != "":
		return say(nil, "something else is mounted, and has to be unmounted, at the %s path %s: %s", what, drivebay.PlainText(p.Path, drivebay.MaxConditionText/2), p.Other)
	}
	return say(nil, "the %s path %s is not mounted", what, drivebay.PlainText(p.Path, drivebay.MaxConditionText/2))
}

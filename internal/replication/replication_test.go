package replication

import (
	"errors"
	"testing"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/drbd"
)

func generations(g ...uint64) drbd.Generations {
	return drbd.Generations{Current: g[0], Bitmap: g[1], History: [2]uint64{g[2], g[3]}}
}

func view(role drbd.Role, c drbd.Connection, disk, peer drbd.Disk) *View {
	g := generations(0x10, 0x20, 0, 0)
	return &View{Status: drbd.Status{Generations: &g, State: drbd.State{Role: role, Connection: c, Disk: disk, PeerDisk: peer}}}
}

func (v *View) with(peer drbd.Role) *View {
	v.State.Peer = peer
	return v
}

func (v *View) but(change func(*View)) *View {
	change(v)
	return v
}

func (v *View) after(c drivebay.ReplicationConflict) *View {
	v.Conflict = c
	return v
}

const (
	pri = drbd.RolePrimary
	sec = drbd.RoleSecondary
)

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		view *View
		want Verdict
	}{
		"in sync":              {view(pri, drbd.Connected, drbd.UpToDate, drbd.UpToDate), Ready},
		"verifying":            {view(pri, drbd.VerifyS, drbd.UpToDate, drbd.UpToDate), Ready},
		"suspended":            {view(pri, drbd.Connected, drbd.UpToDate, drbd.UpToDate).but(func(v *View) { v.State.Suspended = true }), Degraded},
		"they differ":          {view(pri, drbd.Connected, drbd.UpToDate, drbd.UpToDate).but(func(v *View) { v.OutOfSync = 4096 }), Degraded},
		"they differ so far":   {view(pri, drbd.VerifyS, drbd.UpToDate, drbd.UpToDate).but(func(v *View) { v.OutOfSync = 4096 }), Degraded},
		"source":               {view(pri, drbd.SyncSource, drbd.UpToDate, drbd.Inconsistent), Resyncing},
		"target":               {view(sec, drbd.SyncTarget, drbd.Inconsistent, drbd.UpToDate), Resyncing},
		"paused":               {view(sec, drbd.PausedSyncT, drbd.Inconsistent, drbd.UpToDate), Resyncing},
		"peer gone":            {view(pri, drbd.WFConnection, drbd.UpToDate, drbd.DiskUnknown), Degraded},
		"peer without disk":    {view(pri, drbd.Connected, drbd.UpToDate, drbd.Diskless), Degraded},
		"disk lost":            {view(pri, drbd.Connected, drbd.Diskless, drbd.UpToDate), Degraded},
		"behind":               {view(sec, drbd.Behind, drbd.Inconsistent, drbd.UpToDate), Degraded},
		"outdated, peer gone":  {view(sec, drbd.WFConnection, drbd.Outdated, drbd.DiskUnknown), NeedsResync},
		"new, not chosen":      {view(sec, drbd.Connected, drbd.Inconsistent, drbd.Inconsistent), NeedsResync},
		"stand-alone, no word": {view(sec, drbd.StandAlone, drbd.UpToDate, drbd.DiskUnknown), Degraded},
		"connected again":      {view(pri, drbd.Connected, drbd.UpToDate, drbd.UpToDate).after(drivebay.SplitBrain), Ready},
		"split brain":          {view(sec, drbd.StandAlone, drbd.UpToDate, drbd.DiskUnknown).after(drivebay.SplitBrain), SplitBrain},
		"split brain, waiting": {view(pri, drbd.WFConnection, drbd.UpToDate, drbd.DiskUnknown).after(drivebay.SplitBrain), SplitBrain},
		"unrelated":            {view(sec, drbd.StandAlone, drbd.UpToDate, drbd.DiskUnknown).after(drivebay.UnrelatedData), SplitBrain},
	} {
		got, why := Judge(*c.view)
		if got != c.want || (why == "") != (got == Ready) {
			t.Errorf("%s: %v (%s), want %v", name, got, why, c.want)
		}
	}
}

// TestErrorTables follows the tables of the contract, row by row, for each RPC that has the row.
func TestErrorTables(t *testing.T) {
	all := []Verb{Enable, Disable, Promote, Demote, Resync}
	for _, row := range []struct {
		condition string
		verbs     []Verb
		change    func(*Call)
		want      error
	}{
		{"Missing required field", all, func(c *Call) { c.VolumeID = "" }, drivebay.ErrInvalid},
		{"Volume does not exist", all, func(c *Call) { c.Exists = false }, drivebay.ErrNotFound},
		{"Volume is not replicated", []Verb{Promote, Demote, Resync}, func(c *Call) { c.View = nil }, drivebay.ErrRefused},
		{"cannot be promoted without force option", []Verb{Promote}, func(c *Call) { c.View = view(sec, drbd.WFConnection, drbd.UpToDate, drbd.DiskUnknown) }, drivebay.ErrRefused},
		{"image is not demoted", []Verb{Resync}, func(c *Call) { c.View = view(pri, drbd.Connected, drbd.UpToDate, drbd.UpToDate) }, drivebay.ErrRefused},
		{"Operation pending for volume", all, func(c *Call) { c.Pending = true }, drivebay.ErrPending},
		{"Call not implemented", all, func(c *Call) { c.Group = true }, drivebay.ErrNoSupport},
		{"Not authenticated", all, func(c *Call) { c.Secret = false }, drivebay.ErrSecret},
	} {
		for _, verb := range row.verbs {
			c := Call{Verb: verb, VolumeID: "v", Exists: true, Secret: true, View: view(sec, drbd.Connected, drbd.UpToDate, drbd.UpToDate)}
			if _, err := Decide(c); err != nil {
				t.Errorf("verb %d: %v", verb, err)
			}
			row.change(&c)
			if plan, err := Decide(c); !errors.Is(err, row.want) || plan != Nothing {
				t.Errorf("%s, verb %d: %d, %v", row.condition, verb, plan, err)
			}
		}
	}
}

func TestDecide(t *testing.T) {
	fresh := func(peer drbd.Connection) *View {
		v := view(sec, peer, drbd.Inconsistent, drbd.Inconsistent)
		v.Generations.Current = justCreated
		return v
	}
	split := func() *View {
		return view(sec, drbd.StandAlone, drbd.UpToDate, drbd.DiskUnknown).after(drivebay.SplitBrain)
	}
	for name, c := range map[string]struct {
		verb    Verb
		force   bool
		view    *View
		want    Plan
		refused bool
	}{
		"enable":                       {Enable, false, nil, SetUp, false},
		"enable again":                 {Enable, false, split(), Nothing, false},
		"disable":                      {Disable, false, split(), TakeDown, false},
		"disable again":                {Disable, false, nil, Nothing, false},
		"promote":                      {Promote, false, view(sec, drbd.Connected, drbd.UpToDate, drbd.UpToDate).with(sec), BecomePrimary, false},
		"promote again":                {Promote, false, view(pri, drbd.WFConnection, drbd.UpToDate, drbd.DiskUnknown), Nothing, false},
		"promote, peer primary, force": {Promote, true, view(sec, drbd.Connected, drbd.UpToDate, drbd.UpToDate).with(pri), Nothing, true},
		"promote, peer gone, force":    {Promote, true, view(sec, drbd.WFConnection, drbd.UpToDate, drbd.DiskUnknown), BecomePrimaryByForce, false},
		"promote, outdated":            {Promote, false, view(sec, drbd.WFConnection, drbd.Outdated, drbd.DiskUnknown), Nothing, true},
		"promote, half copied, force":  {Promote, true, view(sec, drbd.WFConnection, drbd.Inconsistent, drbd.DiskUnknown), Nothing, true},
		"promote, no disk, force":      {Promote, true, view(sec, drbd.WFConnection, drbd.Diskless, drbd.DiskUnknown), Nothing, true},
		"promote, new":                 {Promote, false, fresh(drbd.Connected), Nothing, true},
		"promote, new, force":          {Promote, true, fresh(drbd.Connected), Nothing, true},
		"demote":                       {Demote, false, view(pri, drbd.Connected, drbd.UpToDate, drbd.UpToDate), BecomeSecondary, false},
		"demote again":                 {Demote, false, view(sec, drbd.Connected, drbd.UpToDate, drbd.UpToDate), Nothing, false},
		"resync, ready":                {Resync, true, view(sec, drbd.Connected, drbd.UpToDate, drbd.UpToDate), Nothing, false},
		"resync, runs":                 {Resync, true, view(sec, drbd.SyncTarget, drbd.Inconsistent, drbd.UpToDate), Wait, false},
		"resync, waiting, force":       {Resync, true, view(sec, drbd.WFConnection, drbd.Outdated, drbd.DiskUnknown), Wait, false},
		"resync, they differ":          {Resync, false, view(sec, drbd.Connected, drbd.UpToDate, drbd.UpToDate).but(func(v *View) { v.OutOfSync = 4096 }), Nothing, true},
		"resync, they differ, force":   {Resync, true, view(sec, drbd.Connected, drbd.UpToDate, drbd.UpToDate).but(func(v *View) { v.OutOfSync = 4096 }), Nothing, true},
		"resync, split brain":          {Resync, false, split(), Nothing, true},
		"resync, split brain, force":   {Resync, true, split(), DiscardLocal, false},
		"resync, refused":              {Resync, false, view(sec, drbd.WFConnection, drbd.UpToDate, drbd.DiskUnknown).after(drivebay.RefusedByPeer), Wait, false},
		"resync, refused, force":       {Resync, true, view(sec, drbd.WFConnection, drbd.UpToDate, drbd.DiskUnknown).after(drivebay.RefusedByPeer), DiscardLocal, false},
		"resync, unrelated":            {Resync, false, view(sec, drbd.StandAlone, drbd.UpToDate, drbd.DiskUnknown).after(drivebay.UnrelatedData), Nothing, true},
		"resync, unrelated, force":     {Resync, true, view(sec, drbd.StandAlone, drbd.UpToDate, drbd.DiskUnknown).after(drivebay.UnrelatedData), Reconnect, false},
		"resync, no word, force":       {Resync, true, view(sec, drbd.StandAlone, drbd.UpToDate, drbd.DiskUnknown), Reconnect, false},
		"resync, split brain over":     {Resync, true, view(sec, drbd.SyncTarget, drbd.Inconsistent, drbd.UpToDate).after(drivebay.SplitBrain), Wait, false},
	} {
		plan, err := Decide(Call{Verb: c.verb, VolumeID: "v", Exists: true, Secret: true, Force: c.force, View: c.view})
		if plan != c.want || c.refused != errors.Is(err, drivebay.ErrRefused) || !c.refused && err != nil {
			t.Errorf("%s: %d, %v; want %d", name, plan, err, c.want)
		}
	}
}

// TestDiscard: of all states, local data are discarded only after a reported split brain, or a refusal of the peer, by force, on a secondary.
func TestDiscard(t *testing.T) {
	discards := 0
	for role := drbd.RoleUnknown; role <= sec; role++ {
		for c := drbd.StandAlone; c <= drbd.Behind; c++ {
			for disk := drbd.Diskless; disk <= drbd.UpToDate; disk++ {
				for _, conflict := range []drivebay.ReplicationConflict{"", drivebay.SplitBrain, drivebay.UnrelatedData, drivebay.RefusedByPeer} {
					for verb := Enable; verb <= Resync; verb++ {
						for _, force := range []bool{false, true} {
							v := view(role, c, disk, drbd.DiskUnknown).after(conflict)
							plan, _ := Decide(Call{Verb: verb, VolumeID: "v", Exists: true, Secret: true, Force: force, View: v})
							if plan != DiscardLocal {
								continue
							}
							if discards++; verb != Resync || !force || role == pri || conflict != drivebay.SplitBrain && conflict != drivebay.RefusedByPeer || c >= drbd.Connected {
								t.Errorf("verb %d discards data in %+v", verb, v.State)
							}
						}
					}
				}
			}
		}
	}
	if discards == 0 {
		t.Error("no split brain can be resolved")
	}
}

// TestDataWithoutGeneration: while the metadata of a side were never in use, only the record of the side says whether it has the
// data. With data it is never connected to a peer that would replace them, and without data it is never the volume.
func TestDataWithoutGeneration(t *testing.T) {
	fresh := func(c drbd.Connection) *View {
		v := view(sec, c, drbd.Inconsistent, drbd.DiskUnknown)
		v.Generations.Current = justCreated
		return v
	}
	for name, c := range map[string]struct {
		verb    Verb
		holds   bool
		view    *View
		want    Plan
		refused bool
	}{
		"enabled with data":                          {Enable, true, nil, SetUpWithData, false},
		"enabled without data":                       {Enable, false, nil, SetUp, false},
		"promoted with data":                         {Promote, true, fresh(drbd.StandAlone), BecomePrimaryByForce, false},
		"promoted without data, alone":               {Promote, false, fresh(drbd.WFConnection), Nothing, true},
		"promoted without data, connected":           {Promote, false, fresh(drbd.Connected), Nothing, true},
		"resynced with data":                         {Resync, true, fresh(drbd.StandAlone), Nothing, true},
		"resynced without data, nothing of the peer": {Resync, false, fresh(drbd.StandAlone), Reconnect, false},
	} {
		plan, err := Decide(Call{Verb: c.verb, VolumeID: "v", Exists: true, Secret: true, Force: true, HoldsData: c.holds, View: c.view})
		if plan != c.want || c.refused != errors.Is(err, drivebay.ErrRefused) || !c.refused && err != nil {
			t.Errorf("%s: %d, %v; want %d", name, plan, err, c.want)
		}
	}
}

func TestInfo(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	syncing, ready, gone := view(sec, drbd.SyncTarget, drbd.Inconsistent, drbd.UpToDate), view(sec, drbd.Connected, drbd.UpToDate, drbd.UpToDate), view(sec, drbd.WFConnection, drbd.UpToDate, drbd.DiskUnknown)
	syncing.ResyncTotal = 1 << 20
	i := Info{}.Observe(*gone, at(0))
	if i != (Info{}) {
		t.Errorf("never in sync: %+v", i)
	}
	i = i.Observe(*syncing, at(1)).Observe(*syncing, at(5)).Observe(*ready, at(11))
	if want := (Info{ReplicationPast: drivebay.ReplicationPast{LastSync: at(11), Bytes: 1 << 20, Duration: 10 * time.Second}}); i != want {
		t.Errorf("after a resync: %+v", i)
	}
	i = i.Observe(*ready, at(20)).Observe(*syncing, at(21)).Observe(*gone, at(22)).Observe(*ready, at(60))
	if want := (Info{ReplicationPast: drivebay.ReplicationPast{LastSync: at(60), Bytes: 1 << 20, Duration: 10 * time.Second}}); i != want {
		t.Errorf("after a resync that was cut off: %+v", i)
	}
	if i = i.Observe(*syncing, at(70)).Observe(*ready, at(-100)); i.Duration != 0 {
		t.Errorf("after the clock was set back: %+v", i)
	}
	// A clock that was ahead while both sides had the same data: the time of that is not known, and is not later than now.
	i = i.Observe(*ready, at(9000)).Observe(*gone, at(9001))
	if !i.LastSync.Equal(at(9000)) {
		t.Errorf("parted: %+v", i)
	}
	i = i.Observe(*gone, at(100)).Observe(*gone, at(160))
	if !i.LastSync.Equal(at(100)) {
		t.Errorf("parted while the clock was ahead: %+v", i)
	}
}

package emul

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// State is what can be seen of a device at run time.
type State struct {
	Name    string          `json:"name"`
	Dev     string          `json:"dev,omitempty"`     // sda
	Generic string          `json:"generic,omitempty"` // sg0
	Address string          `json:"address,omitempty"` // host:channel:target:lun, while it is plugged
	Hang    Hang            `json:"hang,omitempty"`
	Deaf    bool            `json:"deaf,omitempty"`
	Delay   int             `json:"delayMs,omitempty"`
	Gone    bool            `json:"gone,omitempty"`
	Counts  Counts          `json:"counts"`
	Disk    *DiskState      `json:"disk,omitempty"`
	Shelf   *EnclosureState `json:"enclosure,omitempty"`
}

// DiskState is a disk as it is now.
type DiskState struct {
	Power       Power         `json:"power"`
	Stopped     bool          `json:"stopped,omitempty"` // by START STOP UNIT
	Wakes       int           `json:"wakes"`             // how often a command woke it from standby
	WokenBy     string        `json:"wokenBy,omitempty"` // the last of those commands; see Key
	Failed      bool          `json:"failed"`
	Attributes  []Attribute   `json:"attributes,omitempty"`
	Errors      []LoggedError `json:"errors,omitempty"`
	ErrorCount  int           `json:"errorCount"`
	SelfTests   []SelfTest    `json:"selfTests,omitempty"`
	Testing     bool          `json:"testing,omitempty"`
	Statistics  []Statistic   `json:"statistics,omitempty"`
	ReadErrors  []uint64      `json:"readErrors,omitempty"`
	WriteErrors []uint64      `json:"writeErrors,omitempty"`
}

// EnclosureState is an enclosure as it is now.
type EnclosureState struct {
	Slots []SlotState `json:"slots"`
}

// SlotState is a slot with its lights.
type SlotState struct {
	Slot
	Locate bool `json:"locate"`
	Fault  bool `json:"fault"`
	Off    bool `json:"off,omitempty"`
}

// Change is what shall be different; what it leaves out stays.
type Change struct {
	Hang *Hang `json:"hang,omitempty"`
	// Deaf makes a hang one that not even an abort ends: the kernel waits for the
	// device as for a controller that died. Else a command that hangs comes back when
	// its time is over, and the kernel sees how far its error recovery gets.
	Deaf  *bool `json:"deaf,omitempty"`
	Delay *int  `json:"delayMs,omitempty"`
	Gone  *bool `json:"gone,omitempty"`

	Power       *Power      `json:"power,omitempty"`
	Failed      *bool       `json:"failed,omitempty"`
	Attributes  []Attribute `json:"attributes,omitempty"` // replaced or added by id
	Statistics  []Statistic `json:"statistics,omitempty"` // replaced or added by page and offset
	ReadErrors  *[]uint64   `json:"readErrors,omitempty"` // all of them from now on
	WriteErrors *[]uint64   `json:"writeErrors,omitempty"`

	Slots []SlotChange `json:"slots,omitempty"`
}

// SlotChange is a Change of the slot with a name.
type SlotChange struct {
	Name    string  `json:"name"`
	Status  *byte   `json:"status,omitempty"`
	Sensed  *bool   `json:"sensed,omitempty"`
	Removed *bool   `json:"removed,omitempty"`
	Address *uint64 `json:"address,omitempty"`
	Locate  *bool   `json:"locate,omitempty"`
	Fault   *bool   `json:"fault,omitempty"`
}

// State is the device now.
func (u *Unit) State() State {
	u.mu.Lock()
	s := State{Name: u.Name, Hang: u.hang, Deaf: u.deaf, Delay: int(u.delay.Milliseconds()), Gone: u.gone, Counts: u.counts.clone()}
	u.mu.Unlock()
	if u.disk != nil {
		s.Disk = u.disk.state()
	} else {
		s.Shelf = u.shelf.state()
	}
	return s
}

// ResetCounts forgets the commands that came so far.
func (u *Unit) ResetCounts() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.counts = Counts{}
}

// Apply changes the device, or nothing of it if anything of the change is wrong.
func (u *Unit) Apply(c Change) error {
	if err := u.check(c); err != nil {
		return fmt.Errorf("change %s: %w", u.Name, err)
	}
	if u.disk != nil {
		u.disk.apply(c)
	} else {
		u.shelf.apply(c)
	}
	u.mu.Lock()
	set(&u.hang, c.Hang)
	set(&u.deaf, c.Deaf)
	set(&u.gone, c.Gone)
	if c.Delay != nil {
		u.delay = time.Duration(*c.Delay) * time.Millisecond
	}
	u.mu.Unlock()
	u.wake()
	return nil
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func (u *Unit) check(c Change) error {
	if c.Hang != nil {
		if err := c.Hang.valid(); err != nil {
			return err
		}
	}
	if c.Delay != nil && *c.Delay < 0 {
		return fmt.Errorf("delay of %d ms", *c.Delay)
	}
	ofDisk := c.Power != nil || c.Failed != nil || c.Attributes != nil || c.Statistics != nil || c.ReadErrors != nil || c.WriteErrors != nil
	switch {
	case u.disk == nil && ofDisk:
		return fmt.Errorf("it is no disk")
	case u.disk == nil:
		return u.shelf.check(c)
	case c.Slots != nil:
		return fmt.Errorf("it is no enclosure")
	}
	return u.disk.check(c)
}

func (d *SATDisk) state() *DiskState {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endTest()
	return &DiskState{Power: d.power, Stopped: d.halted, Wakes: d.wakes, WokenBy: d.wokenBy, Failed: d.desc.Failed,
		Attributes: slices.Clone(d.desc.Attributes), Errors: slices.Clone(d.desc.Errors), ErrorCount: d.desc.ErrorCount,
		SelfTests: slices.Clone(d.desc.SelfTests), Testing: d.test != nil, Statistics: slices.Clone(d.desc.Statistics),
		ReadErrors: slices.Sorted(maps.Keys(d.badReads)), WriteErrors: slices.Sorted(maps.Keys(d.badWrites))}
}

// changed is the description as a change would leave it.
func (d *SATDisk) changed(c Change) Disk {
	desc := d.desc
	desc.Attributes, desc.Statistics = slices.Clone(desc.Attributes), slices.Clone(desc.Statistics)
	for _, a := range c.Attributes {
		replace(&desc.Attributes, a, func(b Attribute) bool { return a.ID == b.ID })
	}
	for _, s := range c.Statistics {
		replace(&desc.Statistics, s, func(b Statistic) bool { return s.Page == b.Page && s.Offset == b.Offset })
	}
	set(&desc.Failed, c.Failed)
	return desc
}

// replace puts v in place of the element that is the same one, or at the end.
func replace[T any](list *[]T, v T, same func(T) bool) {
	if i := slices.IndexFunc(*list, same); i >= 0 {
		(*list)[i] = v
	} else {
		*list = append(*list, v)
	}
}

func (d *SATDisk) check(c Change) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.Power != nil && !c.Power.known() {
		return fmt.Errorf("power mode %q", *c.Power)
	}
	for _, lbas := range []*[]uint64{c.ReadErrors, c.WriteErrors} {
		if lbas != nil && slices.ContainsFunc(*lbas, func(l uint64) bool { return l >= d.desc.blocks() }) {
			return fmt.Errorf("a bad block is beyond the end")
		}
	}
	return d.changed(c).validate()
}

func (d *SATDisk) apply(c Change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.desc = d.changed(c)
	set(&d.power, c.Power)
	setBad(&d.badReads, c.ReadErrors)
	setBad(&d.badWrites, c.WriteErrors)
}

// setBad replaces a set of bad blocks.
func setBad(blocks *map[uint64]bool, lbas *[]uint64) {
	if lbas == nil {
		return
	}
	*blocks = map[uint64]bool{}
	for _, l := range *lbas {
		(*blocks)[l] = true
	}
}

func (s *Shelf) state() *EnclosureState {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &EnclosureState{}
	for i, slot := range s.desc.Slots {
		now := s.slots[i]
		out.Slots = append(out.Slots, SlotState{Slot: slot, Locate: now.locate, Fault: now.fault, Off: now.off})
	}
	return out
}

func (s *Shelf) index(name string) int {
	return slices.IndexFunc(s.desc.Slots, func(slot Slot) bool { return slot.Name == name })
}

func (s *Shelf) check(c Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sc := range c.Slots {
		if s.index(sc.Name) < 0 {
			return fmt.Errorf("there is no slot %q", sc.Name)
		}
	}
	return nil
}

func (s *Shelf) apply(c Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sc := range c.Slots {
		i := s.index(sc.Name)
		slot, now := &s.desc.Slots[i], &s.slots[i]
		set(&slot.Status, sc.Status)
		set(&slot.Sensed, sc.Sensed)
		set(&slot.Removed, sc.Removed)
		set(&slot.Address, sc.Address)
		set(&now.locate, sc.Locate)
		set(&now.fault, sc.Fault)
	}
}

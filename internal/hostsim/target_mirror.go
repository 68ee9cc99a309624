package hostsim

import "fmt"

// mirrorOf is the same bytes on each of its legs (dm-raid, raid1). A leg that
// fails is not asked again until the table is loaded anew; what becomes of it then
// the superblocks say.
type mirrorOf struct {
	lv   *lv
	legs []*device
}

func (r *mirrorOf) length() uint64 { return r.lv.size() }

// good says whether a leg is used.
func (r *mirrorOf) good(i int) bool { return !r.lv.failed[i] }

func (r *mirrorOf) ask(a access) (drives []*drive, err error) {
	answers := 0
	for i, leg := range r.legs {
		if !r.good(i) {
			continue
		}
		some, err := leg.ask(a)
		if err != nil {
			if r.last(i) { // md keeps the last one, and its errors
				return nil, fmt.Errorf("%w: %w", errIO, err)
			}
			r.fail(i)
			continue
		}
		drives, answers = append(drives, some...), answers+1
		if !a.write {
			break
		}
	}
	if answers == 0 {
		return nil, errIO
	}
	return drives, nil
}

func (r *mirrorOf) last(i int) bool {
	for j := range r.legs {
		if j != i && r.good(j) {
			return false
		}
	}
	return true
}

func (r *mirrorOf) fail(i int) {
	r.lv.failed[i] = true
	r.lv.writeSuperblocks()
	r.lv.group.m.logf(levelErr, "md/raid1:mdX: Disk failure on %s, disabling device.", r.legs[i].name)
}

func (r *mirrorOf) read(p []byte, off uint64) {
	for i, leg := range r.legs {
		if r.good(i) {
			leg.read(p, off)
			return
		}
	}
}

// all does something on the legs that are used.
func (r *mirrorOf) all(work func(*device) error) error {
	for i, leg := range r.legs {
		if r.good(i) {
			if err := work(leg); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *mirrorOf) write(p []byte, off uint64) error {
	return r.all(func(leg *device) error { return leg.write(p, off) })
}

func (r *mirrorOf) zero(off, n uint64) error {
	return r.all(func(leg *device) error { return leg.zero(off, n) })
}

func (r *mirrorOf) discard(off, n uint64) error {
	return r.all(func(leg *device) error { return leg.discard(off, n) })
}

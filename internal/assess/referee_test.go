//go:build !race

package assess

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/health"
	"github.com/drivebay/drivebay/internal/smart"
)

// refereeAttribute is a row of the referee's drive database: the name of an attribute, the format of its
// raw value, and the type of drive that has it (0: any).
type refereeAttribute struct {
	name, format string
	only         drivebay.Type
}

// refereeFamily holds the presets of the models and firmware that match as a whole: smartmontools anchors
// its patterns (knowndrives.cpp, match), the referee's own lookup does not.
type refereeFamily struct {
	model, firmware *regexp.Regexp
	presets         map[uint8]refereeAttribute
}

// refereeDatabase reads the drive database of the referee from its source: it exports none of it.
func refereeDatabase(t *testing.T) (customary map[uint8]refereeAttribute, families []refereeFamily) {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/anatol/smart.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "ata_device_database.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range file.Decls {
		for _, spec := range decl.(*ast.GenDecl).Specs {
			v := spec.(*ast.ValueSpec)
			if v.Names[0].Name == "ataDefaultAttributes" {
				customary = refereePresets(t, v.Values[0])
				continue
			}
			for _, row := range v.Values[0].(*ast.CompositeLit).Elts {
				families = append(families, refereeFamilyOf(t, row.(*ast.CompositeLit)))
			}
		}
	}
	if len(customary) < 50 || len(families) < 300 {
		t.Fatalf("the referee has %d customary attributes and %d families", len(customary), len(families))
	}
	return customary, families
}

func refereeFamilyOf(t *testing.T, row *ast.CompositeLit) refereeFamily {
	whole := func(e ast.Expr) *regexp.Regexp {
		if s := literal(t, e); s != "" {
			return regexp.MustCompile("^(?:" + s + ")$")
		}
		return nil
	}
	return refereeFamily{whole(row.Elts[1]), whole(row.Elts[2]), refereePresets(t, row.Elts[3])}
}

func refereePresets(t *testing.T, e ast.Expr) map[uint8]refereeAttribute {
	lit, ok := e.(*ast.CompositeLit)
	if !ok { // nil
		return nil
	}
	out := map[uint8]refereeAttribute{}
	for _, e := range lit.Elts {
		kv := e.(*ast.KeyValueExpr)
		id, err := strconv.ParseUint(kv.Key.(*ast.BasicLit).Value, 10, 8)
		if err != nil {
			t.Fatal(err)
		}
		row := kv.Value.(*ast.CompositeLit).Elts
		a := refereeAttribute{name: literal(t, row[0])}
		if typ, ok := row[1].(*ast.Ident); ok {
			a.format = strings.TrimPrefix(typ.Name, "AtaDeviceAttributeType")
		}
		if only, ok := row[3].(*ast.Ident); ok {
			a.only = map[string]drivebay.Type{"ataDeviceAttributeRestrictionHDDOnly": drivebay.TypeHDD, "ataDeviceAttributeRestrictionSSDOnly": drivebay.TypeSSD}[only.Name]
		}
		out[uint8(id)] = a
	}
	return out
}

// literal returns the value of a string literal, or "" for another expression.
func literal(t *testing.T, e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// nameBy names and counts the attributes of a drive as the referee does. It reports whether the
// referee knows the drive.
func nameBy(customary map[uint8]refereeAttribute, families []refereeFamily, ev *drivebay.Evidence) bool {
	i := slices.IndexFunc(families, func(f refereeFamily) bool {
		return f.model != nil && f.model.MatchString(ev.Identity.Model) && (f.firmware == nil || f.firmware.MatchString(ev.Identity.Firmware))
	})
	if i < 0 {
		return false
	}
	of := families[i]
	for i := range ev.ATA.Attributes {
		a := &ev.ATA.Attributes[i]
		its, ok := of.presets[a.ID]
		if !ok {
			its = customary[a.ID]
		}
		a.Name, a.Count = cmp.Or(its.name, "Unknown_Attribute"), refereeCount(its.format, a.Raw)
		if its.only != 0 && its.only != ev.Type {
			a.Name = "Unknown_Attribute"
		}
	}
	return true
}

// refereeCount returns the number that smartctl prints first, which counts.
func refereeCount(format string, raw uint64) uint64 {
	switch format {
	case "Raw16", "Raw16OptRaw16", "Raw16OptAvg16":
		return raw & 0xFFFF
	case "Raw24OptRaw8":
		return raw & 0xFFFFFF
	case "Raw24DivRaw24":
		return raw >> 24
	case "Raw24DivRaw32":
		return raw >> 32
	case "Sec2Hour":
		return raw / 3600
	case "Min2Hour":
		return raw & 0xFFFFFFFF / 60
	case "HalfMin2Hour":
		return raw / 120
	case "Msec24Hour32":
		return raw & 0xFFFFFFFF
	case "TempMinMax":
		return raw & 0xFF
	}
	return raw
}

// accepted are the models on which our names and the referee's judge differently, and why ours stay.
var accepted = map[string]string{
	"ATP SATA III M.2 2242":    "Phison's own firmware (SBFM): the raw value of 231 is the life left, and its value stays at 100",
	"ATP SATA III mSATA":       "Phison's own firmware (SBFM): the raw value of 231 is the life left, and its value stays at 100",
	"Corsair Force LS SSD":     "the referee takes it for a SandForce; its firmware (S8FM) and attributes are Phison's: the raw value of 231 is the life left",
	"KIOXIA-EXCERIA SATA SSD":  "the referee takes it for a Phison; its value of 173 is 1, 83 or 116 beside a raw value of 0, and says nothing",
	"KINGSTON SNV425S2128GB":   "JMicron: the value of 173 stays at 100 after thousands of erase cycles, and is no wear",
	"KINGSTON SNV425S264GB":    "JMicron: the value of 173 stays at 100 after thousands of erase cycles, and is no wear",
	"TS64GSSD25S-M":            "JMicron: the value of 173 stays at 100 after thousands of erase cycles, and is no wear",
	"Patriot Torqx 2 32GB SSD": "Indilinx: 9 is 4017906788, which are no hours by either name",
	"Patriot Torqx 2 64GB SSD": "Indilinx: 9 is 1310745700, which are no hours by either name",
}

// TestNamesReferee judges every drive of the fleet that another drive database knows by our names and by
// its names. The verdict, the wear and the hours are the same, or the difference is accepted.
func TestNamesReferee(t *testing.T) {
	customary, families := refereeDatabase(t)
	known, differ := 0, map[string]bool{}
	eachATADrive(t, func(in health.Input) {
		ev := in.Evidence
		smart.Rename(ev.ATA.Attributes, ev.Identity, ev.Type)
		ours := conclusion(in)
		if !nameBy(customary, families, ev) {
			return
		}
		known++
		if its := conclusion(in); its != ours {
			differ[ev.Identity.Model] = true
			if accepted[ev.Identity.Model] == "" {
				t.Errorf("%s %s: by our names %s, by the referee's %s", ev.Identity.Model, ev.Identity.Firmware, ours, its)
			}
		}
	})
	for model := range accepted {
		if !differ[model] {
			t.Errorf("%s: an accepted difference that is gone", model)
		}
	}
	if known < 5000 {
		t.Errorf("the referee knows %d drives of the fleet", known)
	}
	t.Logf("%d drives judged by both databases", known)
}

// conclusion is what the names and counts of the attributes lead to.
func conclusion(in health.Input) string {
	used, ok := health.Used(in)
	hours := uint64(0)
	for _, a := range in.Evidence.ATA.Attributes {
		if a.ID == 9 {
			hours = a.Count
		}
	}
	return fmt.Sprintf("%v, %d %% used (%v), %d h", drivebay.WorstOf(health.Assess(in, health.Default())), used, ok, hours)
}

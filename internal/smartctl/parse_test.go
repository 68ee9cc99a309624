package smartctl

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drivebay/drivebay"
)

func parse(t *testing.T, doc string) *Document {
	t.Helper()
	d, err := Read([]byte(doc))
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return d
}

const ataDoc = `{"smartctl":{"version":[7,3],"exit_status":64},"local_time":{"time_t":1700000000},
"device":{"name":"/dev/sda","type":"sat+megaraid,7","protocol":"ATA"},"model_name":" Spinner 9000 ","serial_number":"S1",
"firmware_version":"F1","wwn":{"naa":5,"oui":3152,"id":2712847316},"user_capacity":{"bytes":4000787030016},"rotation_rate":7200,
"smart_status":{"passed":true},"power_on_time":{"hours":12345},"power_cycle_count":7,"temperature":{"current":35},
"ata_smart_attributes":{"table":[
 {"id":5,"name":"Reallocated_Sector_Ct","value":100,"worst":100,"thresh":10,"when_failed":"","flags":{"prefailure":true},"raw":{"value":8589934592000,"string":"0 (2000 0)"}},
 {"id":187,"name":"Reported_Uncorrect","value":"097","worst":97,"thresh":null,"when_failed":"past","flags":{"prefailure":false},"raw":{"value":3,"string":"3"}},
 {"id":196,"name":"Reallocated_Event_Count","value":100,"worst":100,"thresh":0,"raw":{"value":2818091}},
 {"id":"x","name":"Broken"},
 {"id":1,"name":"Raw_Read_Error_Rate","value":40,"worst":30,"thresh":50,"flags":{"prefailure":true},"raw":{"value":1}},
 {"id":194,"name":"Temperature_Celsius","value":"hot","worst":65,"thresh":0,"when_failed":"","raw":{"string":"35 (Min/Max 20/50)"}}]},
"ata_smart_error_log":{"extended":{"count":12,"table":[{"error_number":12,"lifetime_hours":99,"completion_registers":{"lba":77},"error_description":"Error: UNC"}]}},
"ata_smart_self_test_log":{"standard":{"table":[{"type":{"value":1},"status":{"value":112,"string":"Completed: read failure"},"lifetime_hours":98,"lba":77},
 {"type":{"value":2},"status":{"value":"none"}},{"type":{"value":2},"status":{"value":0,"passed":true},"lifetime_hours":50}]}},
"ata_device_statistics":{"pages":[{"number":7,"table":[{"offset":8,"name":"Percentage Used Endurance Indicator","value":12,"flags":{"valid":true}}]},
 {"number":1,"table":[{"offset":24,"name":"Logical Sectors Written","value":1000,"flags":{"valid":true}},{"offset":40,"value":1,"flags":{"valid":false}}]}]}}`

func TestATA(t *testing.T) {
	d := parse(t, ataDoc)
	ev := d.Evidence
	if ev.Source != "smartctl 7.3" || ev.Protocol != drivebay.ProtocolATA || ev.Type != drivebay.TypeHDD || d.Transport != drivebay.TransportSATA {
		t.Errorf("source %q, protocol %v, type %v, transport %v", ev.Source, ev.Protocol, ev.Type, d.Transport)
	}
	want := drivebay.Identity{Model: "Spinner 9000", Serial: "S1", Firmware: "F1", WWN: "naa.5000c500a1b2c3d4", Size: 4000787030016, RPM: 7200}
	if ev.Identity != want {
		t.Errorf("identity %+v, want %+v", ev.Identity, want)
	}
	if ev.Verdict != drivebay.VerdictPassed || *ev.PowerOnHours != 12345 || *ev.PowerCycles != 7 || *ev.Temperature != 35 || *ev.PercentUsed != 12 || *ev.BytesWritten != 512000 {
		t.Errorf("common fields: %+v", ev)
	}
	attrs := map[uint8]drivebay.Attribute{}
	for _, a := range ev.ATA.Attributes {
		attrs[a.ID] = a
	}
	if len(attrs) != 5 {
		t.Fatalf("want 5 rows, have %+v", attrs)
	}
	for id, count := range map[uint8]uint64{5: 0, 187: 3, 196: 43, 194: 35} {
		if attrs[id].Count != count {
			t.Errorf("attribute %d counts %d, want %d", id, attrs[id].Count, count)
		}
	}
	if a := attrs[5]; a.Raw != 8589934592000 || !a.Prefail || a.Threshold == nil || *a.Threshold != 10 {
		t.Errorf("attribute 5: %+v", a)
	}
	if a := attrs[187]; !a.FailedPast || a.FailedNow || a.Threshold != nil || a.Value != 97 {
		t.Errorf("attribute 187: %+v", a)
	}
	if a := attrs[1]; !a.FailedNow || a.FailedPast {
		t.Errorf("attribute 1 has no when_failed and stands below its threshold: %+v", a)
	}
	if a := attrs[194]; a.Value != 0 || a.FailedNow {
		t.Errorf("attribute 194 has no value: %+v", a)
	}
	if *ev.ATA.ErrorCount != 12 || ev.ATA.Errors[0].LBA != 77 {
		t.Errorf("error log: %+v", ev.ATA.Errors)
	}
	if len(ev.SelfTests) != 2 || ev.SelfTests[0].Result != drivebay.SelfTestFailed || *ev.SelfTests[0].LBA != 77 || ev.SelfTests[1].Kind != "long" {
		t.Errorf("self-tests: %+v", ev.SelfTests)
	}
	if len(ev.ATA.Statistics) != 2 {
		t.Errorf("statistics: %+v", ev.ATA.Statistics)
	}
	wantProblems(t, ev, "table[3].id", "table[5].value", "table[1].status.value")
}

// TestStatisticsBeforeAttributes: the document of a smartctl that did not yet know
// what the statistics mean says less than the drive did.
func TestStatisticsBeforeAttributes(t *testing.T) {
	doc := func(hours, cycles, celsius string) string {
		entry := func(offset int, value string) string {
			return fmt.Sprintf(`{"offset":%d,"value":%s,"flags":{"valid":true}}`, offset, value)
		}
		return `{"device":{"protocol":"ATA"},"model_name":"M","power_on_time":{"hours":12},"power_cycle_count":5,"temperature":{"current":36},
			"ata_device_statistics":{"pages":[{"number":1,"table":[` + entry(8, cycles) + "," + entry(16, hours) + `]},{"number":5,"table":[` + entry(8, celsius) + `]}]}}`
	}
	if ev := parse(t, doc("1234", "77", "-10")).Evidence; *ev.PowerOnHours != 1234 || *ev.PowerCycles != 77 || *ev.Temperature != -10 {
		t.Errorf("%d hours, %d cycles, %d degrees", *ev.PowerOnHours, *ev.PowerCycles, *ev.Temperature)
	}
	if ev := parse(t, doc("-1", "-1", "300")).Evidence; *ev.PowerOnHours != 12 || *ev.PowerCycles != 5 || *ev.Temperature != 36 {
		t.Errorf("nonsense is believed: %d hours, %d cycles, %d degrees", *ev.PowerOnHours, *ev.PowerCycles, *ev.Temperature)
	}
}

func wantProblems(t *testing.T, ev *drivebay.Evidence, pages ...string) {
	t.Helper()
	for _, want := range pages {
		found := false
		for _, p := range ev.Problems {
			found = found || strings.Contains(p.Page, want) || strings.Contains(p.Text, want)
		}
		if !found {
			t.Errorf("no problem speaks of %q: %+v", want, ev.Problems)
		}
	}
}

func TestNVMe(t *testing.T) {
	d := parse(t, `{"smartctl":{"version":[7,4],"exit_status":0},"device":{"type":"nvme","protocol":"NVMe"},"model_name":"N","serial_number":"1",
"nvme_namespaces":[{"id":1,"eui64":{"oui":9528,"ext_id":4295713919},"size":{"bytes":512110190592}}],
"smart_status":{"passed":false,"nvme":{"value":4}},
"nvme_smart_health_information_log":{"critical_warning":4,"temperature":41,"available_spare":100,"available_spare_threshold":10,"percentage_used":300,
 "data_units_read":340282366920938463463374607431768211455,"data_units_written":9007199254740993,"data_units_written_s":"9007199254740994",
 "media_errors":"7","num_err_log_entries":-1,"power_on_hours":1e3},
"nvme_composite_temperature_threshold":{"warning":80,"critical":85},
"nvme_error_information_log":{"table":[{"error_count":3,"status_field":{"value":8194},"lba":{"value":5}}]},
"nvme_self_test_log":{"current_self_test_operation":{"value":2},"current_self_test_completion_percent":30,
 "table":[{"self_test_code":{"value":2},"self_test_result":{"value":7,"string":"Completed: failed segments"},"power_on_hours":9,"lba":12},
          {"self_test_code":{"value":1},"self_test_result":{"value":1},"power_on_hours":8}]}}`)
	ev, n := d.Evidence, d.Evidence.NVMe
	if n == nil {
		t.Fatalf("no log: %+v", ev.Problems)
	}
	if n.PercentageUsed != 255 || n.DataUnitsRead != math.MaxUint64 || n.DataUnitsWritten != 9007199254740994 || n.MediaErrors != 7 || n.PowerOnHours != 1000 || n.TemperatureKelvin != 314 {
		t.Errorf("log: %+v", n)
	}
	if *ev.BytesRead != math.MaxUint64 || *ev.Temperature != 41 || n.CriticalTemp != 85 {
		t.Errorf("common: %+v", ev)
	}
	if ev.Verdict != drivebay.VerdictFailed || n.CriticalWarning != 4 || ev.Type != drivebay.TypeNVMe || d.Transport != drivebay.TransportNVMe {
		t.Errorf("verdict %v, warning %d, type %v, transport %v", ev.Verdict, n.CriticalWarning, ev.Type, d.Transport)
	}
	if ev.Identity.WWN != "eui.00253801000b647f" || ev.Identity.Size != 512110190592 {
		t.Errorf("identity: %+v", ev.Identity)
	}
	if len(ev.SelfTests) != 2 || ev.SelfTests[0].Result != drivebay.SelfTestFailed || *ev.SelfTests[0].LBA != 12 || *ev.SelfTestProgress != 70 {
		t.Errorf("self-tests: %+v", ev.SelfTests)
	}
	wantProblems(t, ev, "num_err_log_entries")
}

func TestNVMeSilence(t *testing.T) {
	for name, log := range map[string]string{
		"missing": ``,
		"zero":    `,"nvme_smart_health_information_log":{"critical_warning":0,"temperature":-273,"available_spare":0,"available_spare_threshold":0,"percentage_used":0,"power_on_hours":0}`,
		"null":    `,"nvme_smart_health_information_log":null`,
		"array":   `,"nvme_smart_health_information_log":[1]`,
	} {
		ev := parse(t, `{"device":{"type":"nvme","protocol":"NVMe"},"model_name":"N","smart_status":{"passed":true}`+log+`}`).Evidence
		if ev.NVMe != nil {
			t.Errorf("%s: a log out of nothing: %+v", name, ev.NVMe)
		}
		wantProblems(t, ev, nvmeSmartPage)
	}
}

func TestNVMeStatusOnly(t *testing.T) {
	const doc = `{"device":{"type":"nvme","protocol":"NVMe"},"model_name":"N","smart_status":{"passed":%v,"nvme":{"value":%d}}}`
	if ev := parse(t, fmt.Sprintf(doc, true, 0)).Evidence; ev.NVMe != nil || len(ev.Problems) != 0 {
		t.Errorf("a passed status is an answer: %+v", ev)
	}
	if ev := parse(t, fmt.Sprintf(doc, false, 4)).Evidence; ev.NVMe == nil || ev.NVMe.CriticalWarning != 4 {
		t.Errorf("the status carries the critical warning: %+v", ev)
	}
}

func TestNVMePartOfALog(t *testing.T) {
	ev := parse(t, `{"device":{"protocol":"NVMe"},"model_name":"N","smart_status":{"passed":true},
"nvme_smart_health_information_log":{"available_spare_threshold":10,"available_spare":"plenty","power_on_hours":3}}`).Evidence
	if ev.NVMe == nil || ev.NVMe.SpareThreshold != 0 {
		t.Errorf("a spare that is not known has no threshold: %+v", ev.NVMe)
	}
	wantProblems(t, ev, "available_spare")
}

func TestSCSI(t *testing.T) {
	d := parse(t, `{"smartctl":{"version":[7,2],"exit_status":8},"device":{"type":"megaraid,3","protocol":"SCSI"},"vendor":"ACME","product":"SAS1","serial_number":"Z",
"logical_unit_id":"0x5000C500A1B2C3D4","rotation_rate":10000,"scsi_transport_protocol":{"name":"SAS (SPL-4)","value":6},
"smart_status":{"passed":false,"scsi":{"asc":93,"ascq":16,"ie_string":"FAILURE"}},"temperature":{"current":40,"drive_trip":65},
"scsi_grown_defect_list":17,"scsi_pending_defects":{"count":2},"scsi_percentage_used_endurance_indicator":33,
"scsi_background_scan":{"status":{"value":3}},"scsi_start_stop_cycle_counter":{"accumulated_start_stop_cycles":45},
"scsi_error_counter_log":{"read":{"total_uncorrected_errors":4,"gigabytes_processed":"64396.534"},"write":{"total_uncorrected_errors":0,"gigabytes_processed":"1e99999999"}},
"scsi_self_test_0":{"code":{"value":1},"result":{"value":7,"string":"Failed in segment --> 3 "},"power_on_time":{"hours":5}}}`)
	ev, s := d.Evidence, d.Evidence.SCSI
	if s == nil || !s.HasIE || s.ASC != 0x5D || s.ASCQ != 0x10 || ev.Verdict != drivebay.VerdictFailed {
		t.Fatalf("exceptions: %+v", s)
	}
	if *s.GrownDefects != 17 || *s.PendingDefects != 2 || *s.BackgroundScan != 3 || *s.TripTemperature != 65 || *s.StartStops != 45 || *ev.PercentUsed != 33 {
		t.Errorf("pages: %+v", s)
	}
	if s.ErrorCounters["read"].Uncorrected != 4 || *ev.BytesRead != 64396534000000 {
		t.Errorf("counters: %+v", s.ErrorCounters)
	}
	if d.Transport != drivebay.TransportSAS || ev.Identity.WWN != "naa.5000c500a1b2c3d4" || ev.Identity.Vendor != "ACME" || ev.Identity.Model != "SAS1" {
		t.Errorf("transport %v, identity %+v", d.Transport, ev.Identity)
	}
	if len(ev.SelfTests) != 1 || ev.SelfTests[0].Result != drivebay.SelfTestFailed || ev.SelfTests[0].Hours != 5 {
		t.Errorf("self-tests: %+v", ev.SelfTests)
	}
	wantProblems(t, ev, "gigabytes_processed")
}

func TestVerdict(t *testing.T) {
	tests := map[string]struct {
		fields string
		want   drivebay.Verdict
	}{
		"passed":                {`"smart_status":{"passed":true}`, drivebay.VerdictPassed},
		"failed":                {`"smart_status":{"passed":false}`, drivebay.VerdictFailed},
		"missing":               {`"serial_number":"1"`, drivebay.VerdictUnknown},
		"null":                  {`"smart_status":{"passed":null}`, drivebay.VerdictUnknown},
		"a word":                {`"smart_status":{"passed":"yes"}`, drivebay.VerdictUnknown},
		"exit status":           {`"smartctl":{"exit_status":8}`, drivebay.VerdictFailed},
		"exit status and words": {`"smartctl":{"exit_status":12},"smart_status":{"passed":true}`, drivebay.VerdictFailed},
		"exit status -1":        {`"smartctl":{"exit_status":-1},"smart_status":{"passed":true}`, drivebay.VerdictPassed},
		"exit status 264":       {`"smartctl":{"exit_status":264},"smart_status":{"passed":true}`, drivebay.VerdictPassed},
		"other exit bits":       {`"smartctl":{"exit_status":244},"smart_status":{"passed":true}`, drivebay.VerdictPassed},
	}
	for name, tt := range tests {
		if got := parse(t, `{"model_name":"m","device":{"protocol":"ATA"},`+tt.fields+`}`).Evidence.Verdict; got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// TestLost: a part with evidence that has another type, or rows that are none, is lost. Other parts, and
// parts that are not there, lose nothing.
func TestLost(t *testing.T) {
	for fields, want := range map[string]bool{
		`"ata_smart_attributes":{"table":"[object Object]"}`:                                               true,
		`"ata_smart_attributes":{"table":{"id":5}}`:                                                        true,
		`"ata_smart_attributes":"x"`:                                                                       true,
		`"ata_smart_attributes":{"table":[{"name":"Reallocated_Sector_Ct","raw":{"value":5}}]}`:            true,
		`"ata_smart_attributes":{"table":[{"id":"five"}]}`:                                                 true,
		`"ata_smart_attributes":{"table":[{"id":5,"raw":{"value":"many"}}]}`:                               true,
		`"ata_smart_error_log":{"extended":{"table":7}}`:                                                   true,
		`"smart_status":{"passed":"yes"}`:                                                                  true,
		`"ata_smart_attributes":null`:                                                                      false,
		`"ata_smart_attributes":{"table":[]}`:                                                              false,
		`"ata_smart_attributes":{"table":[{"id":"5","raw":{"value":"0"}}]}`:                                false,
		`"trim":{"supported":"yes"}`:                                                                       false,
		`"ata_smart_attributes":{"table":[{"id":5,"value":100,"worst":100,"thresh":1,"raw":{"value":0}}]}`: false,
	} {
		lost := false
		for _, p := range parse(t, `{"model_name":"m","device":{"protocol":"ATA"},`+fields+`}`).Evidence.Problems {
			lost = lost || p.Lost
		}
		if lost != want {
			t.Errorf("%s: lost %v, want %v", fields, lost, want)
		}
	}
}

func TestErrorLog(t *testing.T) {
	for row, want := range map[string]string{
		`"error_description":"Error: UNC 8 sectors at LBA = 0x1 = 1"`:         drivebay.LogUncorrectable,
		`"error_description":"Error: UNC at LBA = 0x1 = 1"`:                   drivebay.LogUncorrectable,
		`"error_description":"Error: ICRC, ABRT 1 sectors"`:                   drivebay.LogLink,
		`"error_description":"Error: ICRC, UNC"`:                              drivebay.LogUncorrectable,
		`"error_description":"Error: IDNF at LBA = 0x1 = 1"`:                  "",
		`"error_description":"Error: WP","completion_registers":{"error":64}`: "",
		`"error_description":"","completion_registers":{"error":64}`:          drivebay.LogUncorrectable,
		`"completion_registers":{"error":132}`:                                drivebay.LogLink,
		`"completion_registers":{"error":4}`:                                  "",
	} {
		ev := parse(t, `{"model_name":"m","device":{"protocol":"ATA"},"ata_smart_error_log":{"extended":{"count":1,"table":[{"lifetime_hours":7,`+row+`}]}}}`).Evidence
		if len(ev.ATA.Errors) != 1 || ev.ATA.Errors[0].Kind != want || ev.ATA.Errors[0].Hours != 7 {
			t.Errorf("%s: %+v, want %q", row, ev.ATA.Errors, want)
		}
	}
}

func TestTransport(t *testing.T) {
	for device, want := range map[string]drivebay.Transport{
		`{"type":"sat","protocol":"ATA"}`:                                     drivebay.TransportSATA,
		`{"type":"ata","protocol":"ATA"}`:                                     drivebay.TransportSATA,
		`{"type":"areca,1/2","protocol":"ATA"}`:                               drivebay.TransportSATA,
		`{"type":"3ware,0","protocol":"ATA"}`:                                 drivebay.TransportSATA,
		`{"type":"cciss,0","protocol":"SCSI"}`:                                drivebay.TransportSAS,
		`{"type":"scsi","protocol":"SCSI"}`:                                   drivebay.TransportSCSI,
		`{"type":"usbjmicron","protocol":"ATA"}`:                              drivebay.TransportUSB,
		`{"type":"sntrealtek","protocol":"NVMe"}`:                             drivebay.TransportUSB,
		`{"type":"sat","protocol":"ATA","info_name":"/dev/sda [USB Bridge]"}`: drivebay.TransportUSB,
		`{"type":"","protocol":"NVMe"}`:                                       drivebay.TransportNVMe,
	} {
		if got := parse(t, `{"model_name":"m","device":`+device+`}`).Transport; got != want {
			t.Errorf("%s: %v, want %v", device, got, want)
		}
	}
}

func TestType(t *testing.T) {
	for fields, want := range map[string]drivebay.Type{
		`"rotation_rate":0`:             drivebay.TypeSSD,
		`"rotation_rate":1`:             drivebay.TypeSSD,
		`"rotation_rate":5400`:          drivebay.TypeHDD,
		`"trim":{"supported":true}`:     drivebay.TypeSSD,
		`"model_family":"Maker's SSDs"`: drivebay.TypeSSD,
		`"ata_smart_attributes":{"table":[{"id":3,"name":"Spin_Up_Time"}]}`:          drivebay.TypeHDD,
		`"ata_smart_attributes":{"table":[{"id":177,"name":"Wear_Leveling_Count"}]}`: drivebay.TypeSSD,
		`"ata_smart_attributes":{"table":[{"id":9,"name":"Power_On_Hours"}]}`:        drivebay.TypeUnknown,
	} {
		if got := parse(t, `{"model_name":"m","device":{"protocol":"ATA"},`+fields+`}`).Evidence.Type; got != want {
			t.Errorf("%s: %v, want %v", fields, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	for doc, want := range map[string]string{
		``:                  "truncated",
		`{"model_name":"m"`: "truncated",
		`[]`:                "not an object",
		`"x"`:               "not an object",
		`{"a":1} {"b":2}`:   "data after its end",
		`{]`:                "invalid character",
		`{}`:                "contains no drive",
		`{"smartctl":{"exit_status":2,"messages":[{"string":"Smartctl open device: /dev/sdz failed: No such device","severity":"error"}]},"device":{"name":"/dev/sdz"}}`: "open device: /dev/sdz failed: No such device",
		`{"smartctl":{"exit_status":2}}`: "could not be opened",
	} {
		_, err := Parse([]byte(doc))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want it to say %q", doc, err, want)
		}
	}
}

func TestLeading(t *testing.T) {
	for s, want := range map[string]uint64{"0 (2000 0)": 0, "35 (Min/Max 20/50)": 35, "12345h+32m+01.5s": 12345, "0/23899760": 0, "99999999999999999999": math.MaxUint64} {
		if got, ok := leading(s); !ok || got != want {
			t.Errorf("%q: %d %v, want %d", s, got, ok, want)
		}
	}
	if _, ok := leading("- -"); ok {
		t.Error("a number was found in none")
	}
}

func TestNoHealthIsNoFault(t *testing.T) {
	ev := parse(t, `{"device":{"type":"scsi","protocol":"SCSI"},"scsi_model_name":"QEMU","smart_support":{"available":false},
"smartctl":{"exit_status":4,"messages":[{"string":"Terminate command early due to bad response to IEC mode page","severity":"error"}]}}`).Evidence
	if len(ev.Problems) != 2 || !ev.Problems[0].Expected || !ev.Problems[1].Expected {
		t.Errorf("problems: %+v", ev.Problems)
	}
}

// corpus is where the documents of real drives are, which are not ours to copy.
func corpus(t *testing.T) string {
	dir := os.Getenv("DRIVEBAY_CORPUS")
	named := dir != ""
	if !named {
		dir = filepath.Join("..", "..", "..", "shared", "corpus")
	}
	if _, err := os.Stat(dir); err != nil {
		if named {
			t.Fatalf("DRIVEBAY_CORPUS: %v", err)
		}
		t.Skipf("no corpus of real drives at %s (set DRIVEBAY_CORPUS)", dir)
	}
	return dir
}

func TestCorpus(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus(t), "smartctl", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Read(b)
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(f), err)
			continue
		}
		if ev := d.Evidence; ev.Identity.Model == "" || ev.Type == drivebay.TypeUnknown || ev.Verdict != drivebay.VerdictPassed || d.Transport == drivebay.TransportUnknown {
			t.Errorf("%s: type %v, verdict %v, %+v, problems %+v", filepath.Base(f), ev.Type, ev.Verdict, ev.Identity, ev.Problems)
		} else if len(ev.Problems) > 0 {
			t.Logf("%s: %+v", filepath.Base(f), ev.Problems)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(ataDoc))
	f.Add([]byte(`{"model_name":"m","device":{"protocol":"NVMe"},"nvme_smart_health_information_log":{"media_errors":1e300}}`))
	f.Add([]byte(`{"model_name":"m","device":{"protocol":"SCSI"},"scsi_error_counter_log":{"read":{"gigabytes_processed":"-1e9"}}}`))
	f.Add([]byte(`{"smartctl":{"messages":[{"string":"failed"}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := Read(b)
		if (d == nil) == (err == nil) {
			t.Fatalf("document %v and error %v", d, err)
		}
		if d != nil && len(d.Evidence.Problems) > 2*maxProblems {
			t.Fatalf("%d problems", len(d.Evidence.Problems))
		}
	})
}

// The spans of the selective self-test log are those of a completed test only while no span is under test, and
// only if the last test completed without error.
func TestSelectiveSpans(t *testing.T) {
	const doc = `{"device":{"name":"/dev/sda","protocol":"ATA"},"model_name":"M","serial_number":"S","ata_smart_self_test_log":{"standard":{"table":[
	{"type":{"value":4},"status":{"value":0},"lifetime_hours":8},{"type":{"value":2},"status":{"value":112},"lifetime_hours":7,"lba":77}]}},
	"ata_smart_selective_self_test_log":{"table":[{"lba_min":70,"lba_max":80,"status":{"value":%[1]d,"string":%[2]q}},
	{"lba_min":0,"lba_max":0,"status":{"value":%[1]d,"string":"Not_testing"}},{"lba_min":9,"lba_max":8,"status":{"value":%[1]d,"string":"Not_testing"}}]}}`
	for _, c := range []struct {
		state  string
		status int
		want   int
	}{
		{"Not_testing", 0, 1}, {"Completed [00% left] (0-65535)", 0, 1}, {"Completed", 0, 1}, {"", 0, 0},
		{"Not_testing", 0xF4, 1}, {"Self_test_in_progress [90% left] (70-80)", 0xF9, 0},
		{"Not_testing", 0x19, 0}, {"Not_testing", 0x20, 0}, {"Not_testing", 0x79, 0}, {"Not_testing", 0x90, 0},
		{"Completed_read_failure", 0x70, 0}, {"Completed_read_failure [90% left] (70-80)", 0x79, 0}, {"Aborted_by_host [90% left] (70-80)", 0x19, 0},
	} {
		ev := parse(t, fmt.Sprintf(doc, c.status, c.state)).Evidence
		if got := ev.ATA.SelectiveSpans; len(got) != c.want || c.want == 1 && got[0] != (drivebay.Span{First: 70, Last: 80}) {
			t.Errorf("%q, status %02Xh: spans %v", c.state, c.status, got)
		}
		if !ev.SelfTests[1].ShortLBA || ev.SelfTests[0].ShortLBA {
			t.Errorf("%+v", ev.SelfTests)
		}
	}
}

// A self-test in progress is known by its status byte, whose lower half has the tenths that remain; the
// percentage beside it decides if there is one.
func TestSelfTestInProgress(t *testing.T) {
	for status, want := range map[string]int{`{"value":244}`: 40, `{"value":244,"remaining_percent":35}`: 35, `{"value":244,"remaining_percent":-1}`: 40, `{"value":255}`: 100} {
		ev := parse(t, `{"device":{"protocol":"ATA"},"model_name":"M","ata_smart_data":{"self_test":{"status":`+status+`}}}`).Evidence
		if got := ev.SelfTestProgress; got == nil || *got != want {
			t.Errorf("%s: %v, want %d remaining", status, got, want)
		}
		if run := ev.RunningTest(); run == nil {
			t.Errorf("%s: no self-test is in progress", status)
		}
	}
}

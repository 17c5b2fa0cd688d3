// Temporal's development server, as `temporal server start-dev --headless` starts it, on a file.
//
// The command line's own main cannot be built from the module proxy (one of its modules is not published
// there), so this main calls the same package with the same options. It changes two things, both in
// Temporal's favour: SQLite in WAL mode with synchronous FULL (the default is a rollback journal, as durable
// and slower), and rate limits that no workload reaches. It refuses to run in memory.
package main

import (
	"log/slog"
	"os"
	"strconv"

	"github.com/google/uuid"
	"github.com/temporalio/cli/internal/devserver"
	_ "modernc.org/sqlite"
)

const (
	host     = "127.0.0.1"
	noLimits = 1_000_000
)

func main() {
	if len(os.Args) != 3 {
		panic("usage: temporal-server PORT FILE")
	}
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	_, err = devserver.Start(devserver.StartOptions{
		FrontendIP:             host,
		FrontendPort:           port,
		MetricsPort:            devserver.MustGetFreePort(host),
		Namespaces:             []string{"default"},
		Logger:                 slog.New(slog.NewTextHandler(os.Stderr, nil)),
		LogLevel:               slog.LevelWarn,
		DatabaseFile:           os.Args[2],
		ClusterID:              uuid.NewString(),
		MasterClusterName:      "active",
		CurrentClusterName:     "active",
		InitialFailoverVersion: 1,
		SqlitePragmas:          map[string]string{"journal_mode": "wal", "synchronous": "full"},
		DynamicConfigValues: map[string]any{
			"system.forceSearchAttributesCacheRefreshOnRead": true,
			"system.forceNexusEndpointRefreshOnRead":         true,
			"frontend.persistenceMaxQPS":                     noLimits,
			"history.persistenceMaxQPS":                      noLimits,
			"matching.persistenceMaxQPS":                     noLimits,
			"frontend.rps":                                   noLimits,
			"frontend.namespaceRPS":                          noLimits,
			"history.rps":                                    noLimits,
			"matching.rps":                                   noLimits,
			"history.transferProcessorMaxPollRPS":            noLimits,
			"history.timerProcessorMaxPollRPS":               noLimits,
			"history.visibilityProcessorMaxPollRPS":          noLimits,
		},
	})
	if err != nil {
		panic(err)
	}
	select {}
}

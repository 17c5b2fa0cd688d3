// A Temporal worker and its client in one process, driven by lines of JSON: a request on standard input, its
// answer on standard output, as driver.py does it for the peers in Python.
//
// A step is an activity, which the server records before the next one starts. Local activities would be
// faster and are refused: they are not recorded one by one.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const (
	queue    = "bench"
	crashed  = "crash"
	inFlight = 64
	// How long an activity lost in a crash is waited for before it runs again.
	activityTimeout = 5 * time.Second
)

type result struct {
	Text string `json:"text"`
	N    int    `json:"n"`
}

var aboutHundredBytes = result{"a result of about a hundred bytes, as a small step of an agent would return it here", 7}

type request struct {
	Do    string `json:"do"`
	N     int    `json:"n"`
	Nodes int    `json:"nodes"`
}

type answer map[string]any

// What a step did is only written down where a crash is measured.
func step(_ context.Context, i int) (result, error) {
	side := os.Getenv("PEERS_SIDE")
	if side == "" {
		return aboutHundredBytes, nil
	}
	file, err := os.OpenFile(side, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return result{}, err
	}
	defer file.Close()
	_, err = fmt.Fprintf(file, "%d %.6f\n", i, float64(time.Now().UnixMicro())/1e6)
	return aboutHundredBytes, err
}

func stepOptions(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: activityTimeout})
}

func chain(ctx workflow.Context, nodes int) (last result, err error) {
	ctx = stepOptions(ctx)
	for i := 0; i < nodes && err == nil; i++ {
		err = workflow.ExecuteActivity(ctx, step, i).Get(ctx, &last)
	}
	return last, err
}

func fan(ctx workflow.Context, branches int) (int, error) {
	ctx = stepOptions(ctx)
	futures := make([]workflow.Future, branches)
	for i := range futures {
		futures[i] = workflow.ExecuteActivity(ctx, step, i)
	}
	all := make([]result, branches)
	for i, future := range futures {
		if err := future.Get(ctx, &all[i]); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

var parked atomic.Int64

func gate(ctx workflow.Context) (last result, err error) {
	if !workflow.IsReplaying(ctx) {
		parked.Add(1)
	}
	workflow.GetSignalChannel(ctx, "answer").Receive(ctx, nil)
	ctx = stepOptions(ctx)
	err = workflow.ExecuteActivity(ctx, step, 0).Get(ctx, &last)
	return last, err
}

type bench struct {
	client client.Client
	waits  []client.WorkflowRun
}

func (b *bench) start(id string, of any, arguments ...any) client.WorkflowRun {
	options := client.StartWorkflowOptions{ID: id, TaskQueue: queue}
	run, err := b.client.ExecuteWorkflow(context.Background(), options, of, arguments...)
	must(err)
	return run
}

func ended(run client.WorkflowRun) {
	must(run.Get(context.Background(), nil))
}

// So many at a time, each once.
func many(runs int, one func(int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range inFlight {
		all.Go(func() {
			for at := int(next.Add(1)) - 1; at < runs; at = int(next.Add(1)) - 1 {
				one(at)
			}
		})
	}
	all.Wait()
}

func (b *bench) latencies(runs int) []float64 {
	all := make([]float64, runs)
	for i := range all {
		began := time.Now()
		ended(b.start("", chain, 1))
		all[i] = float64(time.Since(began).Microseconds()) / 1_000
	}
	return all
}

func (b *bench) park(runs int) {
	before := parked.Load()
	b.waits = make([]client.WorkflowRun, runs)
	many(runs, func(at int) { b.waits[at] = b.start("", gate) })
	for parked.Load()-before < int64(runs) {
		time.Sleep(5 * time.Millisecond)
	}
}

func (b *bench) answerAll() {
	many(len(b.waits), func(at int) {
		run := b.waits[at]
		must(b.client.SignalWorkflow(context.Background(), run.GetID(), run.GetRunID(), "answer", nil))
		ended(run)
	})
}

func (b *bench) do(asked request) answer {
	began := time.Now()
	reply := answer{}
	switch asked.Do {
	case "chain":
		ended(b.start("", chain, asked.N))
	case "many":
		many(asked.N, func(int) { ended(b.start("", chain, asked.Nodes)) })
	case "fan":
		ended(b.start("", fan, asked.N))
	case "latency":
		reply["ms"] = b.latencies(asked.N)
	case "park":
		b.park(asked.N)
	case "answer":
		b.answerAll()
	case "begin":
		b.start(crashed, chain, asked.N)
	case "resume":
		ended(b.client.GetWorkflow(context.Background(), crashed, ""))
	default:
		panic("unknown: " + asked.Do)
	}
	reply["seconds"] = time.Since(began).Seconds()
	return reply
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(message string, rest ...any) {
	fmt.Fprintln(os.Stderr, append([]any{message}, rest...)...)
}

// The server answers only once all of its services have found each other.
func connect(address string) client.Client {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		connected, err := client.Dial(client.Options{HostPort: address, Logger: quiet{}})
		if err == nil {
			return connected
		}
		if time.Since(began) > time.Minute {
			panic(err)
		}
	}
}

func main() {
	b := &bench{client: connect(os.Args[1])}
	w := worker.New(b.client, queue, worker.Options{})
	w.RegisterWorkflow(chain)
	w.RegisterWorkflow(fan)
	w.RegisterWorkflow(gate)
	w.RegisterActivity(step)
	must(w.Start())
	out := json.NewEncoder(os.Stdout)
	must(out.Encode(answer{"ready": true}))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var asked request
		must(json.Unmarshal(lines.Bytes(), &asked))
		must(out.Encode(b.do(asked)))
	}
}

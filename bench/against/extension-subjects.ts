/** Extensions in a comparison: calls under idempotency keys, events to many subscribers, results in chunks, tasks. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readEvents } from '../load/event-readers.ts'
import { lineReader } from '../load/lines.ts'
import { cpuMicros, launch, STEP_MS, within } from '../processes.ts'
import { startEventServer } from '../sections/events.ts'
import { startStreaming, streamingCaller } from '../sections/streaming.ts'
import { openTasks } from '../sections/tasks.ts'
import type { Revision } from '../work.ts'
import type { Subject, Worker } from './compare.ts'

const SUBSCRIBERS = 100
/** Streams at a time: one alone would mostly measure its pauses. */
const STREAMS = 8

export function extensionSubjects(revisions: readonly Revision[]): readonly Subject[] {
  return [
    ...(['none', 'memory', 'sqlite'] as const).flatMap(store => [
      keyedSubject(store, false),
      ...(store === 'none' ? [] : [keyedSubject(store, true)]),
    ]),
    ...revisions.map(eventSubject),
    ...revisions.map(streamSubject),
    ...revisions.map(taskSubject),
  ]
}

function keyedSubject(store: 'none' | 'memory' | 'sqlite', repeat: boolean): Subject {
  return {
    section: 'idempotency',
    name: store === 'none' ? 'calls without a key, in process' : `calls under keys, ${store}${repeat ? ', repeated' : ''}`,
    unit: 'µs',
    open: async ({ flags }): Promise<Worker> => {
      const folder = mkdtempSync(join(tmpdir(), 'vivarium-bench-'))
      const url = { none: '', memory: 'memory:', sqlite: `sqlite:${join(folder, 'keys.db')}` }[store]
      const child = launch('against/keyed-calls.ts', [url, repeat ? 'repeat' : 'fresh'], flags)
      let receive: (line: string) => void = () => {}
      child.process.stdout.on(
        'data',
        lineReader(lines => {
          for (const line of lines) receive(line.toString())
        }),
      )
      const ask = (ms: number): Promise<string> => {
        const line = new Promise<string>(resolve => {
          receive = resolve
        })
        child.process.stdin.write(`${ms}\n`)
        return within(STEP_MS, 'keyed calls', Promise.race([line, child.gone]))
      }
      return {
        sample: async ms => JSON.parse(await ask(ms)) as { cost: number; count: number },
        stop: async () => {
          await child.stop()
          rmSync(folder, { recursive: true, force: true })
        },
      }
    },
  }
}

function eventSubject(revision: Revision): Subject {
  return {
    section: 'events',
    name: `a delivery to one of ${SUBSCRIBERS} subscribers, ${revision}`,
    unit: 'µs',
    open: async ({ flags }) => {
      const server = await startEventServer('servers/events.mjs', ['memory:'], flags)
      const readers = await Promise.all(Array.from({ length: SUBSCRIBERS }, () => readEvents(server.url, revision)))
      let emitted = 0
      const arrived = async (): Promise<void> => {
        while (readers.some(reader => reader.heard() < emitted)) await new Promise(resolve => setImmediate(resolve))
      }
      return {
        sample: async ms => {
          const [began, used, before] = [performance.now(), cpuMicros(server.child.pid), emitted]
          while (performance.now() - began < ms) {
            emitted++
            await within(STEP_MS, 'emit', server.emit(1))
            await within(STEP_MS, 'deliver', arrived())
          }
          return { cost: cpuMicros(server.child.pid) - used, count: (emitted - before) * SUBSCRIBERS }
        },
        stop: async () => {
          for (const reader of readers) reader.end()
          await server.child.stop()
        },
      }
    },
  }
}

function streamSubject(revision: Revision): Subject {
  return {
    section: 'streaming',
    name: `a result of 20 chunks, ${revision}`,
    unit: 'µs',
    open: async ({ flags }) => {
      const { child, url } = await startStreaming('vivarium', 0, flags)
      const { call, close } = await streamingCaller(revision)(url)
      return {
        sample: async ms => {
          const [began, used] = [performance.now(), cpuMicros(child.pid)]
          let count = 0
          const caller = async (): Promise<void> => {
            do {
              await within(STEP_MS, 'stream', call())
              count++
            } while (performance.now() - began < ms)
          }
          await Promise.all(Array.from({ length: STREAMS }, caller))
          return { cost: cpuMicros(child.pid) - used, count }
        },
        stop: async () => {
          await close()
          await child.stop()
        },
      }
    },
  }
}

function taskSubject(revision: Revision): Subject {
  return {
    section: 'tasks',
    name: `a short task, ${revision}`,
    unit: 'µs',
    open: async ({ flags }) => {
      const tasks = await openTasks(revision, flags)
      return {
        sample: async ms => {
          const { cost, times } = await tasks.run(ms)
          return { cost, count: times.length }
        },
        stop: tasks.stop,
      }
    },
  }
}

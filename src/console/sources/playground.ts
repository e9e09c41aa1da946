/** A playground as a source of the console: its server, calls, frames and log. */
import type { ServerDetail, ServerItem } from '../contract/servers.ts'
import type { Screen } from '../contract/session.ts'
import type { Feed } from '../feed.ts'
import { publishFrames } from '../frames/news.ts'
import { reducedCall } from '../playground/calls.ts'
import type { Playground } from '../playground/playground.ts'
import type { ConsoleAction, ConsoleSource } from './source.ts'

const mostItems = 2_000

/** Makes a source of a playground. `screens`: the first one is opened. */
export function playgroundSource(playground: Playground, screens: readonly Screen[]): ConsoleSource {
  const offered = playground.conformance === undefined ? screens.filter(each => each !== 'conformance') : screens
  const { name, label, again, log, traffic, server } = playground
  return {
    ...{
      kind: 'playground',
      name: label,
      screens: offered,
      traffic,
      playground,
      target: { label, again, folder: playground.tapes.folder },
    },
    servers: () => [server.row],
    server: wanted => (wanted === name ? detailOf(playground) : undefined),
    retry: () => server.retry(),
    note: action => log.add(action.outcome === 'success' ? 'info' : 'warn', 'console', sentenceOf(action)),
    observed: { log: (query, before, limit) => log.find(query, before, limit) },
    publish: (feed, signal) => publish(playground, feed, signal),
  }
}

/** What is offered, as far as it was listed. */
function detailOf({ server, offers, log, name }: Playground): ServerDetail {
  const items: readonly ServerItem[] = offers.known().slice(0, mostItems)
  return { ...server.row, items, leftOut: [], stderr: log.stderrOf(name) }
}

function publish(playground: Playground, feed: Feed, signal: AbortSignal): void {
  const { traffic, log, clock } = playground
  publishFrames(traffic, feed, clock, signal)
  const stops = [
    log.follow(line => feed.publish('log', line)),
    playground.follow({
      server: row => feed.publish('server', row),
      call: call => feed.publish('call', call, reducedCall(call)),
      tape: row => feed.publish('tape', row),
      conformance: now => feed.publish('conformance', now),
      result: row => feed.publish('result', row),
    }),
  ]
  signal.addEventListener('abort', () => {
    for (const stop of stops) stop()
  })
}

/** Who did what at the console, as a line of the log. */
export function sentenceOf({ route, by, outcome, code, ...about }: ConsoleAction): string {
  const what = about.server ?? about.approval ?? about.item
  return [by, route, ...(what === undefined ? [] : [what]), outcome, ...(code === undefined ? [] : [code])].join(' ')
}

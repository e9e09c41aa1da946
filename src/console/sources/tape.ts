/** A tape as a source of the console: the frames that are on it, read only. */
import { basename } from 'node:path'
import type { Clock } from '../../core/clock.ts'
import { LogRing } from '../log-ring.ts'
import type { TapeOptions } from '../shown.ts'
import { TapeTraffic } from '../tapes/tape-traffic.ts'
import { sentenceOf } from './playground.ts'
import type { ConsoleSource } from './source.ts'

/** Makes a source of a tape. */
export function tapeSource({ tape, name }: TapeOptions, clock: Clock): ConsoleSource {
  const log = new LogRing(clock)
  if (tape.cut) log.add('warn', 'tape', 'The end of the tape is missing; everything before it is shown.')
  return {
    ...{ kind: 'tape', name, screens: ['traffic', 'logs'], target: { label: name, again: name } },
    traffic: new TapeTraffic(tape, basename(name).replace(/\.tape$/, '')),
    servers: () => [],
    server: () => undefined,
    retry: () => undefined,
    note: action => log.add(action.outcome === 'success' ? 'info' : 'warn', 'console', sentenceOf(action)),
    observed: { log: (query, before, limit) => log.find(query, before, limit) },
    publish: (feed, signal) =>
      signal.addEventListener(
        'abort',
        log.follow(line => feed.publish('log', line)),
      ),
  }
}

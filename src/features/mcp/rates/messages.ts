/** How often a caller may ask for something, or be told something: what features ask before they do it. */
import type { Exchange } from '../../../engine/exchange.ts'
import { port } from '../../../engine/ports.ts'

/** The limits of callers. */
export interface RatesPort {
  /** Throws a refusal that says how long to wait. */
  completion(exchange: Exchange): void
  /** How many calls a caller may make in a minute, in the long run. Undefined: no limit holds for all. */
  readonly callsPerMinute: number | undefined
  /** How many calls a caller may make at once now, and after how long as many as ever. */
  callsLeft(exchange: Exchange): { readonly tokens: number; readonly fullInMs: number } | undefined
  /** Whether one more log message may be sent to the caller. */
  log(exchange: Exchange): boolean
  /** Whether it may be told once more how far its call has come. */
  progress(exchange: Exchange): boolean
}

/** The limits of callers. */
export const ratesPort = port<RatesPort>('rates')

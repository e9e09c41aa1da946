/** A tape as a mock server, on standard input and output or on a port. */
import { type Front, type FrontOptions, openFront } from './front.ts'
import { playTape } from './play-tape.ts'
import { openTape, type PlayingOptions, type Tape } from './tape.ts'

export interface ServeTapeOptions extends PlayingOptions {
  /** Where clients come in. Default: any free port. */
  readonly client?: FrontOptions
}

/** @example const mock = await serveTape('session.tape', { client: { port: 7000 }, faults: ['drop:0.1'] }) */
export async function serveTape(tape: string | Tape, { client = {}, ...playing }: ServeTapeOptions = {}): Promise<Front> {
  const { conversations } = typeof tape === 'string' ? await openTape(tape) : tape
  return openFront(client, playTape(conversations, playing))
}

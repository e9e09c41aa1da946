/** One hostile server: what it does runs beside the runner, what the host does runs in a client process of its own. */
import type { Client, ConnectOptions } from 'vivarium/client'

export interface Attack {
  readonly key: string
  /** A sentence: what the server does, and what has to come of it. */
  readonly name: string
  /** Starts the server. Default: the program of the key, which the client itself starts. */
  serve?(): Promise<Peer>
  /** In the client's process. Gives what was seen; throws what should have been there instead. */
  act(host: Host): Promise<string>
}

/** A server that runs beside the runner. */
export interface Peer {
  readonly url: string
  /** Looked at when the client is done: what the server saw that it should not have seen. */
  complaint?(): string | undefined
  close(): Promise<void>
}

/** What an attack has to do with in the client's process. */
export interface Host {
  /** To the hostile server. Refusals that the client only notes are in `traced`. */
  connect(options?: ConnectOptions): Promise<Client>
  /** The hostile program under another name, with its standard error told line by line. */
  start(program: string, options?: ConnectOptions, onLine?: (line: string) => void): Promise<Client>
  readonly traced: Traced
  /** Waits for a failure of one of these kinds, said in few words; gives the kind. */
  refused(call: Promise<unknown>, ...kinds: readonly string[]): Promise<string>
  /** The same client still serves honest calls. */
  fine(client: Client): Promise<void>
}

/** How often each event was traced, and what the first few said. */
export class Traced {
  readonly #counts = new Map<string, number>()
  readonly #details: string[] = []

  readonly note = (event: string, detail: unknown): void => {
    this.#counts.set(event, this.count(event) + 1)
    if (this.#details.length < 50)
      this.#details.push(`${event} ${detail instanceof Error ? detail.message : JSON.stringify(detail)}`)
  }

  count(event: string): number {
    return this.#counts.get(event) ?? 0
  }

  /** Whether some event said this. */
  said(text: string): boolean {
    return this.#details.some(detail => detail.includes(text))
  }

  toString(): string {
    return [...this.#counts].map(([event, count]) => `${count} × ${event}`).join(', ') || 'nothing'
  }
}

export function must(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Error(otherwise)
}

/** The names of all tools that the client shows. */
export async function toolNames(client: Client): Promise<string[]> {
  const names: string[] = []
  for await (const { name } of client.tools()) names.push(name)
  return names
}

export function pause(ms: number): Promise<void> {
  return new Promise(done => setTimeout(done, ms))
}

export function list<T>(length: number, make: (index: number) => T): T[] {
  return Array.from({ length }, (_, index) => make(index))
}

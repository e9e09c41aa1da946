/** State that calls write: kept by the server for whoever signed in, or carried by the client in tokens, large ones on the store. */
import { textOf } from '../spec/wire.ts'
import { Later, type Line } from './line.ts'
import { broken, double, type Finding, lost, type Operation, passes } from './operation.ts'

/** Notes of one caller, written one after the other, each under a key. */
export class KeptNotes implements Operation {
  readonly id: string
  readonly #count: number
  readonly #acknowledged: number[] = []
  readonly #unknown: number[] = []

  constructor(id: string, count: number) {
    this.id = id
    this.#count = count
  }

  get end(): string {
    return this.#unknown.length === 0 ? 'states kept' : 'states kept, with writes of unknown outcome'
  }

  get #next(): number {
    return this.#acknowledged.length + this.#unknown.length + 1
  }

  async run(line: Line): Promise<void> {
    const peer = await line.plain(this.id)
    for (;;) {
      const entry = this.#next
      if (entry > this.#count) return
      const headers = { 'idempotency-key': `${this.id}.${entry}` }
      const { frame } = await peer.ask('tools/call', { name: 'note', arguments: { entry } }, { headers })
      const code = codeIn(frame)
      if (passes(code)) throw new Later(code)
      if (code === 'OUTCOME_UNKNOWN') this.#unknown.push(entry)
      else if (textOf(frame) === 'noted') this.#acknowledged.push(entry)
      else throw new Error(JSON.stringify(frame))
    }
  }

  async check(line: Line): Promise<readonly Finding[]> {
    const peer = await line.plain(this.id)
    const { frame } = await peer.ask('tools/call', { name: 'notes' })
    return this.#compare(JSON.parse(textOf(frame)) as number[])
  }

  async judge(): Promise<readonly Finding[]> {
    return []
  }

  #compare(found: readonly number[]): readonly Finding[] {
    const missing = this.#acknowledged.filter(entry => !found.includes(entry))
    const twice = found.filter((entry, at) => found.indexOf(entry) !== at)
    // The one under way may be there already.
    const known = new Set([...this.#acknowledged, ...this.#unknown, this.#next])
    const strange = found.filter(entry => !known.has(entry) || entry > this.#count)
    const sorted = found.every((entry, at) => at === 0 || entry > (found[at - 1] ?? 0))
    return [
      ...missing.map(entry => lost(`${this.id}.${entry} was acknowledged, and the state is ${found}`)),
      ...twice.map(entry => double(`${this.id}.${entry} was written twice: ${found}`)),
      ...(strange.length > 0 || !sorted ? [broken(`${this.id} should be ${this.#acknowledged}, and is ${found}`)] : []),
    ]
  }
}

/** Notes in a state that the client carries: what was not answered never was. */
export class CarriedNotes implements Operation {
  readonly id: string
  readonly #padding: string
  readonly #acknowledged: number[] = []
  #next = 1

  constructor(id: string, large: boolean) {
    this.id = id
    // More than fits into a token.
    this.#padding = large ? 'x'.repeat(70_000) : ''
  }

  get end(): string {
    return this.#padding === '' ? 'states carried' : 'states carried, their text on the store'
  }

  async run(line: Line): Promise<void> {
    const client = await line.client('2026-07-28')
    while (this.#acknowledged.length < 3) {
      const entry = this.#next++
      const out = await client.callTool('note', { entry, padding: this.#padding }, { conversation: this.id })
      if (passes(out.problem?.code)) throw new Later(out.text)
      if (out.isError) throw new Error(out.text)
      this.#acknowledged.push(entry)
    }
  }

  async check(line: Line): Promise<readonly Finding[]> {
    const client = await line.client('2026-07-28')
    const out = await client.callTool('notes', {}, { conversation: this.id })
    if (passes(out.problem?.code)) throw new Later(out.text)
    return out.text === JSON.stringify(this.#acknowledged)
      ? []
      : [lost(`${this.id} should be ${this.#acknowledged}, and is ${out.text}`)]
  }

  async judge(): Promise<readonly Finding[]> {
    return []
  }
}

function codeIn(frame: Readonly<Record<string, unknown>>): string | undefined {
  return /"code":"([A-Z_]+)"/.exec(JSON.stringify(frame))?.[1]
}

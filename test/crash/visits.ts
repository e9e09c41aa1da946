/** Sessions of the older wires: one that was opened in one life goes on in the next. */
import { headersFor, json, send } from '../spec/http.ts'
import { helloParams } from '../spec/wire.ts'
import { Later, type Line } from './line.ts'
import { broken, type Finding, lost, type Operation } from './operation.ts'

const revision = '2025-11-25'

export class Visit implements Operation {
  readonly id: string
  #session: string | undefined = undefined
  #tried = false

  constructor(id: string) {
    this.id = id
  }

  get end(): string {
    return this.#session === undefined ? 'sessions never opened' : 'sessions opened'
  }

  async run(line: Line): Promise<void> {
    // Of a session whose id never arrived nobody asks again.
    if (this.#tried) return
    this.#tried = true
    const body = { jsonrpc: '2.0', id: 0, method: 'initialize', params: helloParams(revision) }
    const { headers, status } = await send(line.url, { headers: { ...json, authorization: `Bearer ${this.id}` }, body })
    const session = headers['mcp-session-id']
    if (typeof session === 'string') this.#session = session
    else throw new Error(`${this.id} was answered with ${status} and without a session`)
  }

  async check(line: Line): Promise<readonly Finding[]> {
    if (this.#session === undefined) return []
    const params = { name: 'alive' }
    const headers = { ...headersFor(revision, 'tools/call', params, this.#session), authorization: `Bearer ${this.id}` }
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
    const { status, text } = await send(line.url, { headers, body })
    if (status === 503) throw new Later(text)
    if (status === 404) return [lost(`${this.id} was opened, and is not known any more`)]
    return status === 200 ? [] : [broken(`${this.id} was answered with ${status}: ${text}`)]
  }

  async judge(): Promise<readonly Finding[]> {
    return []
  }
}

/** Sagas that live and die with the server that runs them. What is left of one is taken back in a later life. */
import type { RevisionId } from 'vivarium/client'
import type { Line } from './line.ts'
import { type Aftermath, broken, type Finding, lost, type Operation } from './operation.ts'
import { judgeUnit } from './units.ts'

export interface TripOptions {
  readonly id: string
  readonly revision: RevisionId
  readonly commit: boolean
}

const steps = 3

export class Trip implements Operation {
  readonly #options: TripOptions
  #tried = false
  #told: string | undefined = undefined
  #refused: string | undefined = undefined
  #status = 'never begun'

  constructor(options: TripOptions) {
    this.#options = options
  }

  get id(): string {
    return this.#options.id
  }

  get end(): string {
    return `sagas ${this.#status.replaceAll('_', ' ')}`
  }

  async run(line: Line): Promise<void> {
    // Its process is gone: others end it.
    if (this.#tried) return
    this.#tried = true
    const { id, revision, commit } = this.#options
    const out = await (await line.client(revision)).callTool('trip', { id, commit })
    if (!out.isError) this.#told = out.text
    // It was so slow that it was taken for dead: others have ended it.
    else if (out.problem?.code !== 'TRANSACTION_CONFLICT') this.#refused = out.text
  }

  async check(): Promise<readonly Finding[]> {
    return this.#refused === undefined ? [] : [broken(`${this.id} failed: ${this.#refused}`)]
  }

  async judge({ seen, store, stuck }: Aftermath): Promise<readonly Finding[]> {
    const entry = await store.get(`saga/unit/all/${this.id}`)
    if (entry === undefined) return this.#told === undefined ? [] : [lost(`${this.id} was ${this.#told}, and nobody knows it`)]
    const { status } = JSON.parse(entry.value) as { status: string }
    const records = (await store.scan(`saga/step/all/${this.id}/`)).map(({ value }) => JSON.parse(value) as { status: string })
    // Begun, and its process died before the first step: there is nothing to take back, and its hour is not over.
    if (status === 'open' && records.length === 0) {
      this.#status = 'without a step'
      return []
    }
    this.#status = status
    const ended = Array.from({ length: steps }, (_, at) => ({ id: `${this.id}.${at + 1}`, status: records[at]?.status }))
    return judgeUnit({ id: this.id, status, told: this.#told, steps: ended, listed: stuck.has(this.id) }, { seen })
  }
}

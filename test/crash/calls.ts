/** Calls under a key, of a tool that must not run twice, or of one that may. */
import type { RevisionId, ToolOutcome } from 'vivarium/client'
import { Later, type Line } from './line.ts'
import { type Aftermath, broken, double, type Finding, lost, type Operation, passes } from './operation.ts'

export interface CallOptions {
  readonly id: string
  readonly tool: 'act' | 'set'
  readonly revision: RevisionId
  /** Under a new key each time: what nobody should do, and what the harness must notice. */
  readonly careless: boolean
}

export class KeyedCall implements Operation {
  readonly #options: CallOptions
  #tries = 0
  #answer: string | undefined = undefined
  #unknown = false
  #refused: string | undefined = undefined

  constructor(options: CallOptions) {
    this.#options = options
  }

  get id(): string {
    return this.#options.id
  }

  get end(): string {
    if (this.#unknown) return 'calls of unknown outcome'
    return this.#answer === undefined ? 'calls without an answer' : 'calls acknowledged'
  }

  async run(line: Line): Promise<void> {
    this.#tries++
    const out = await this.#call(line)
    const code = out.problem?.code
    if (!out.isError) this.#answer = out.text
    else if (code === 'OUTCOME_UNKNOWN') this.#unknown = true
    else if (passes(code)) throw new Later(code)
    else this.#refused = out.text
  }

  async check(line: Line): Promise<readonly Finding[]> {
    if (this.#refused !== undefined) return [broken(`${this.id} was refused: ${this.#refused}`)]
    const out = await this.#call(line)
    const code = out.problem?.code
    if (passes(code)) throw new Later(code)
    if (this.#unknown)
      return code === 'OUTCOME_UNKNOWN' ? [] : [broken(`${this.id} was of unknown outcome, and then ${code ?? 'done'}`)]
    return out.text === this.#answer ? [] : [lost(`${this.id} was answered "${this.#answer}", and then "${out.text}"`)]
  }

  async judge({ seen }: Aftermath): Promise<readonly Finding[]> {
    const { tool, id } = this.#options
    const times = seen.times(tool, id)
    if (this.#answer !== undefined && times === 0) return [lost(`${id} was acknowledged and never happened`)]
    if (tool === 'set') return this.#unknown ? [broken(`${id} may be repeated, and its outcome was said to be unknown`)] : []
    return times > 1 ? [double(`${id} happened ${times} times`)] : []
  }

  async #call(line: Line): Promise<ToolOutcome> {
    const { tool, id, revision, careless } = this.#options
    const client = await line.client(revision)
    return client.callTool(tool, { id }, { idempotencyKey: careless ? `${id}-${this.#tries}` : id })
  }
}

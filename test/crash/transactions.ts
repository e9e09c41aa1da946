/** Transactions of the server: begun, two or three steps, committed or rolled back. What cannot go on is left to its timeout. */
import { classify, type RevisionId, type Transaction, type TransactionReport } from 'vivarium/client'
import { Later, type Line } from './line.ts'
import { type Aftermath, broken, type Finding, lost, type Operation, passes } from './operation.ts'
import { isOver, judgeUnit } from './units.ts'

export interface TransactionOptions {
  readonly id: string
  readonly revision: RevisionId
  readonly steps: readonly ('make' | 'mint' | 'forge')[]
  readonly commit: boolean
  /** Whether its steps have names; one that has is not begun again after a crash, not even where its tool may be. */
  readonly named: boolean
}

/** In fast time. */
const timeout = '24s'

export class WholeTransaction implements Operation {
  readonly #options: TransactionOptions
  #begun: Transaction | undefined = undefined
  #tried = false
  #next = 0
  #commit: boolean
  #told: string | undefined = undefined
  #last: TransactionReport | undefined = undefined

  constructor(options: TransactionOptions) {
    this.#options = options
    this.#commit = options.commit
  }

  get id(): string {
    return this.#options.id
  }

  get end(): string {
    return `transactions ${this.#last === undefined ? 'never begun' : this.#last.status.replaceAll('_', ' ')}`
  }

  async run(line: Line): Promise<void> {
    const { id, revision } = this.#options
    if (this.#begun === undefined) {
      // Whether it was begun nobody here knows; under its id nobody begins it twice.
      if (this.#tried) return
      this.#tried = true
      this.#begun = await (await line.client(revision)).transaction({ id, timeout })
    }
    await this.#goOn(this.#begun)
    this.#told = await this.#finish(this.#begun)
  }

  /** Step by step; one that cannot be applied, or whose end is unknown, is the end of all. */
  async #goOn(tx: Transaction): Promise<void> {
    const { steps, named } = this.#options
    for (; this.#next < steps.length; this.#next++) {
      const step = this.#stepId(this.#next)
      const out = await tx.callTool(steps[this.#next] ?? '', { id: step }, { idempotencyKey: step, ...(named ? { step } : {}) })
      const code = out.problem?.code
      if (passes(code)) throw new Later(code)
      if (!out.isError) continue
      this.#commit = false
      return
    }
  }

  async #finish(tx: Transaction): Promise<string> {
    if (this.#commit)
      try {
        return (await tx.commit()).status
      } catch (error) {
        if (classify(error).code !== 'TRANSACTION_CONFLICT') throw error
        // It took too long and was rolled back meanwhile.
        this.#commit = false
      }
    return (await tx.rollback()).status
  }

  async check(line: Line): Promise<readonly Finding[]> {
    const client = await line.client(this.#options.revision)
    try {
      this.#last = await client.transactionStatus(this.id)
    } catch (error) {
      if (classify(error).code !== 'RESOURCE_NOT_FOUND') throw error
      return this.#begun === undefined ? [] : [lost(`${this.id} was begun, and nobody knows it`)]
    }
    if (!isOver(this.#last.status)) throw new Later(this.#last.status)
    return []
  }

  async judge({ seen, stuck }: Aftermath): Promise<readonly Finding[]> {
    const last = this.#last
    const all = this.#options.steps.map((tool, at) => ({
      id: this.#stepId(at),
      status: this.#statusOf(tool, at),
      effect: tool === 'forge' ? ('forge' as const) : ('make' as const),
    }))
    if (last === undefined)
      return all.some(({ id, effect }) => seen.times(effect, id) > 0) ? [broken(`${this.id} had effects and is unknown`)] : []
    // Of a transaction that was committed all steps were made; of another one perhaps only the first.
    const steps = last.status === 'committed' ? all : all.slice(0, Math.max(last.steps.length, this.#next))
    return judgeUnit({ id: this.id, status: last.status, told: this.#told, steps, listed: stuck.has(this.id) }, { seen })
  }

  /** Without names it is known only whether one of its tool could not be taken back. */
  #statusOf(tool: string, at: number): string | undefined {
    const steps = this.#last?.steps ?? []
    if (this.#options.named) return steps.find(({ id }) => id === this.#stepId(at))?.status
    return steps.find(step => step.tool === tool && step.status === 'compensation_failed')?.status
  }

  #stepId(at: number): string {
    return `${this.id}.${at + 1}`
  }
}

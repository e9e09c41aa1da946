/**
 * One request, normalised: what is to be done, by whom, with what, and under which conditions. Digests are computed when first
 * asked for and kept, since most calls need none of them.
 */
import { digest } from './digest.ts'

/** The unit of work a call takes part in. */
interface CallUnit {
  readonly id: string
  readonly step?: string
}

/** Where a call belongs in a trace. Correlation only, no authority. */
interface CallTrace {
  readonly parent: string
  readonly state?: string
}

export interface CallFacts {
  /** Names this operation; it is also the correlation id of all that is written about it. */
  readonly id: string
  /** The key of the principal; undefined where nobody is known. */
  readonly owner: string | undefined
  /** What is called. */
  readonly target: string
  readonly arguments?: Readonly<Record<string, unknown>> | undefined
  /** The digest of the target's definition, as it is offered now. */
  readonly definition?: (() => Promise<string>) | undefined
  /** What the caller says it is for. Describes, never permits. */
  readonly intent?: string | undefined
  /** Under which it is done once. */
  readonly key?: string | undefined
  readonly unit?: CallUnit | undefined
  /** The token of the state it builds on. */
  readonly state?: string | undefined
  /** The most units it may cost. */
  readonly budget?: number | undefined
  /** Milliseconds since the epoch. */
  readonly deadline?: number | undefined
  readonly trace?: CallTrace | undefined
}

const none: Readonly<Record<string, unknown>> = {}

export class Call {
  readonly facts: CallFacts
  readonly arguments: Readonly<Record<string, unknown>>
  #arguments: Promise<string> | undefined
  #fingerprint: Promise<string> | undefined
  #binding: Promise<string> | undefined

  constructor(facts: CallFacts) {
    this.facts = facts
    this.arguments = facts.arguments ?? none
  }

  get argumentsDigest(): Promise<string> {
    this.#arguments ??= digest(this.arguments)
    return this.#arguments
  }

  /** Two calls under one key are the same call if they have the same fingerprint. */
  get fingerprint(): Promise<string> {
    this.#fingerprint ??= fingerprint(this.facts.target, this.arguments, this.facts.unit?.id)
    return this.#fingerprint
  }

  /** What an approval is given for: this target, as it is defined now, with these arguments. */
  get binding(): Promise<string> {
    this.#binding ??= this.#bind()
    return this.#binding
  }

  async #bind(): Promise<string> {
    return binding(this.facts.target, this.arguments, await this.facts.definition?.())
  }

  /** The milliseconds left, never below 0; undefined without a deadline. */
  timeLeft(now: number): number | undefined {
    return this.facts.deadline === undefined ? undefined : Math.max(0, this.facts.deadline - now)
  }
}

/** A digest of what is called, with what, as part of which unit. What a call says of itself beside that is not in it. */
export function fingerprint(target: string, args: Readonly<Record<string, unknown>>, unit: string | undefined): Promise<string> {
  return digest([target, args, unit ?? null])
}

/** A digest of what an approval is good for. */
export function binding(
  target: string,
  args: Readonly<Record<string, unknown>>,
  definition: string | undefined,
): Promise<string> {
  return digest([target, args, definition ?? null])
}

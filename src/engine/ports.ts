/** Ports: what one feature lets others use. A token names the port and carries its type; who provides it is looked up by the token. */

/** Names a port. */
export interface Port<T> {
  readonly name: string
  /** Carries the type; never set. */
  readonly type?: T
}

/** Declares a port, in the `messages.ts` of the feature that provides it. */
export function port<T>(name: string): Port<T> {
  return { name }
}

/** The ports that the features of one engine provide. */
export class Ports {
  readonly #provided = new Map<Port<unknown>, unknown>()

  provide<T>(token: Port<T>, value: T): void {
    if (this.#provided.has(token)) throw new Error(`Two features provide the port "${token.name}"`)
    this.#provided.set(token, value)
  }

  /** Throws where nobody provides it: then a feature is missing from the list. */
  get<T>(token: Port<T>): T {
    const value = this.#provided.get(token)
    if (value === undefined) throw new Error(`No feature provides the port "${token.name}"`)
    return value as T
  }

  /** Undefined where nobody provides it. */
  find<T>(token: Port<T>): T | undefined {
    return this.#provided.get(token) as T | undefined
  }
}

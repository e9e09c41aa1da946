/**
 * By what an event was admitted, kept with it while it waits: the program that was connected under the name of its server, and what
 * its feature set declared, or the subscription of the config that it came by. When it is run it is held against both, whether its
 * server is connected by then or not.
 */
import { type Why, why } from '../../core/why.ts'
import type { SetUse } from '../../features/live/dialects/messages.ts'
import type { FeatureSetFacts } from '../../features/live/feature-sets/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { bindingDigest } from '../approvals/binding.ts'
import { allowFix } from '../judge.ts'
import type { SetConsent } from './set-consent.ts'

export interface SetAdmission {
  /** A digest of what was connected; absent where nothing is known but the name. */
  readonly identity?: string
  /** What the set declared; absent where it declared nothing. */
  readonly facts?: FeatureSetFacts
  /** The name of the server's event, where the config subscribes to it: then its entry is the consent, and there is no feature set. */
  readonly subscription?: string
}

interface AdmissionParts {
  readonly consent: SetConsent
  /** What is connected under the name of a server. */
  identityOf(server: string): string | undefined
  /** The events of it that the config subscribes to. */
  subscriptionsOf(server: string): readonly string[]
  /** What it declared when it was last connected. */
  declared(server: string, featureSet: string): FeatureSetFacts | undefined
  /** Reads anew what was answered about its feature sets: another process may have done so. */
  refresh(server: string): Promise<void>
}

export class Admissions {
  readonly #parts: AdmissionParts
  /** Whose declarations are known, by the name of the server. */
  readonly #declaredBy = new Map<string, string | undefined>()

  constructor(parts: AdmissionParts) {
    this.#parts = parts
  }

  /** The server has declared its feature sets. */
  declared(server: string): void {
    this.#declaredBy.set(server, this.#identity(server))
  }

  /** What an event that comes now is admitted by. */
  now(server: string, featureSet: string, subscription?: string): SetAdmission {
    const identity = this.#identity(server)
    const by = identity === undefined ? {} : { identity }
    if (subscription !== undefined) return { ...by, subscription }
    const facts = this.#facts(server, featureSet)
    return { ...by, ...(facts !== undefined && { facts }) }
  }

  /** Why an event that was admitted by this must not be run now; undefined: it may. */
  async refusal(server: string, featureSet: string, uses: readonly SetUse[], admitted: SetAdmission): Promise<Why | undefined> {
    if (admitted.identity !== this.#identity(server)) return serverChanged(server)
    const { subscription } = admitted
    if (subscription !== undefined)
      return this.#parts.subscriptionsOf(server).includes(subscription) ? undefined : unsubscribed(server, subscription)
    const facts = this.#facts(server, featureSet) ?? admitted.facts
    if (facts !== undefined && this.#parts.consent.rests(server, featureSet, facts)) await this.#parts.refresh(server)
    return this.withdrawn(server, featureSet, uses, facts)
  }

  /** Why a set may not do any of these, where nobody agrees to it any more. Of one that nobody knows nothing can be said. */
  withdrawn(server: string, featureSet: string, uses: readonly SetUse[], known?: FeatureSetFacts): Why | undefined {
    const facts = known ?? this.#facts(server, featureSet)
    if (facts === undefined || this.#parts.consent.allows(server, featureSet, facts, uses)) return undefined
    const message = `Nobody agrees any more to the feature set ${clip(featureSet)} of ${clip(server)} doing this`
    return why('CONSENT_WITHDRAWN', 'feature-sets', message, allowFix({ kind: 'set', server, featureSet }))
  }

  /** Arguments of commands may be secrets, so no more than a digest is kept. */
  #identity(server: string): string | undefined {
    const identity = this.#parts.identityOf(server)
    return identity === undefined ? undefined : bindingDigest(identity)
  }

  /** What another program declared under this name says nothing of this one. */
  #facts(server: string, featureSet: string): FeatureSetFacts | undefined {
    if (this.#declaredBy.get(server) !== this.#identity(server)) return undefined
    return this.#parts.declared(server, featureSet)
  }
}

function unsubscribed(server: string, event: string): Why {
  const message = `The config does not subscribe any more to the event ${clip(event)} of ${clip(server)}`
  const fix = `Put ${clip(event)} into "events" of its entry again; events that come from then on run`
  return why('CONSENT_WITHDRAWN', `config.${clip(server)}.events`, message, fix)
}

function serverChanged(server: string): Why {
  const message = `The event came from another program than the one that is called ${clip(server)} now`
  const fix = 'Give a new server a name of its own, or the old one its name back before its events are run'
  return why('SERVER_CHANGED', 'inbox.identity', message, fix)
}

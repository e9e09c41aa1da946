/**
 * The member `host` of a config file while a host runs on it. When the file changes, what can be applied at once is applied; of the
 * rest it is said that it counts from the next start. A section that cannot be read keeps the whole file from being used.
 */
import { type Why, why } from '../core/why.ts'
import { parseConfig } from '../host/config/read.ts'
import type { Host } from '../host/host.ts'
import type { HostOptions, HostSettings } from '../host/options.ts'
import { messageOf } from '../stores/store.ts'
import { readSettings, type Settings } from './settings.ts'

export interface RunningSettingsOptions {
  /** The section as it was when the host was made. */
  readonly written: Settings['written']
  readonly file: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly told: (what: Why) => void
}

type OnConfig = NonNullable<HostOptions['onConfig']>

/** What a running host takes. */
const applied = ['policy', 'budgets', 'roots'] as const satisfies readonly (keyof HostSettings)[]

export class RunningSettings {
  /** Undefined until it is made. */
  host: Host | undefined = undefined
  readonly #options: RunningSettingsOptions
  #now: Settings['written']

  constructor(options: RunningSettingsOptions) {
    this.#options = options
    this.#now = options.written
  }

  /** Asks whoever decides about the file first; applies what it says of the host if the answer is yes. */
  after(agreed: OnConfig): OnConfig {
    return async (config, text) => (await agreed(config, text)) ?? this.#apply(text)
  }

  async #apply(text: string): Promise<Why | undefined> {
    const { file, env, told } = this.#options
    if (this.host === undefined) return undefined
    try {
      const { host, written } = readSettings(await parseConfig(text, file), file, env)
      const before = this.#now
      const members = new Set([...Object.keys(before), ...Object.keys(written)])
      const changed = [...members].filter(name => JSON.stringify(before[name]) !== JSON.stringify(written[name]))
      const next = Object.fromEntries(
        applied.filter(name => changed.includes(name)).map(name => [name, host[name] ?? empty[name]]),
      )
      if (Object.keys(next).length > 0) await this.host.update(next)
      this.#now = written
      for (const name of changed) if (!(name in next)) told(later(name))
      return undefined
    } catch (error) {
      return why('CONFIG_INVALID', 'config.host', messageOf(error), 'Correct the member "host"; all stays as it is until then')
    }
  }
}

/** For a member that is gone. */
const empty = { policy: {}, budgets: [], roots: [] } as const satisfies HostSettings

function later(name: string): Why {
  return why(
    'RESTART_NEEDED',
    `host.${name}`,
    `host.${name} has changed, and counts from the next start`,
    'Start the host anew to use it',
  )
}

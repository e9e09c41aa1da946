/** What the file and the options of `vivarium gateway` come to together: the same for `--check` and for the start. */
import { why } from '../../core/why.ts'
import { servingFault } from '../../gateway/config/serving.ts'
import type { GatewayConfig } from '../../gateway/index.ts'
import type { TrustSettings } from '../../gateway/trust/settings.ts'

export interface ServingOptions {
  readonly stdio?: boolean
  readonly port?: number
  readonly host?: string
  readonly unprotected?: boolean
}

/** The config with what keeps it from being served in this way among its faults. */
export function asServed(config: GatewayConfig<TrustSettings>, options: ServingOptions): GatewayConfig<TrustSettings> {
  if (options.stdio === true) return config
  const { frame, trust, file, lines } = config
  const place = { ...frame.listen, ...(options.host !== undefined && { host: options.host }) }
  const fault = servingFault({ place, auth: trust.auth, unprotected: options.unprotected === true })
  if (fault === undefined) return config
  const { member, message, fix } = fault
  const line = lines.get(member) ?? 1
  return { ...config, faults: [...config.faults, { file, line, why: why('CONFIG_INVALID', `gateway.${member}`, message, fix) }] }
}

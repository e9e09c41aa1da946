/**
 * The page runs under `require-trusted-types-for 'script'`: the browser refuses to load a script from a plain text. This is the one policy,
 * and it lets our own worker through and nothing else.
 */
interface TrustedPolicy {
  createScriptURL(address: string): string
}

interface TrustedFactory {
  createPolicy(name: string, rules: { createScriptURL(address: string): string }): TrustedPolicy
}

function own(address: string): string {
  const { origin, pathname } = new URL(address, location.href)
  if (origin === location.origin && /^\/assets\/worker-[\w-]+\.js$/.test(pathname)) return address
  throw new TypeError(`${address} is not a worker of this page`)
}

const factory = (globalThis as { trustedTypes?: TrustedFactory }).trustedTypes
const policy = factory?.createPolicy('vivarium', { createScriptURL: own }) ?? { createScriptURL: own }

/** The address of a worker, as the browser accepts it. */
export function workerAddress(address: string): string {
  return policy.createScriptURL(address)
}

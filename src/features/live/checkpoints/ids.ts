/** Ids of checkpoints whose state the host keeps. Nothing is remembered of them: that one was given out here can be told from itself. */
import { fromBase64Url, toBase64Url } from '../../../core/base64.ts'
import { put, type Store } from '../../../stores/store.ts'

const keyName = 'live/checkpoint-key'
const tagBytes = 12

export interface CheckpointIds {
  issue(featureSet: string): Promise<string>
  issued(featureSet: string, checkpoint: string): Promise<boolean>
}

export function checkpointIds(store: () => Promise<Store>): CheckpointIds {
  let loading: Promise<CryptoKey> | undefined
  const key = (): Promise<CryptoKey> => {
    loading ??= load(store).catch(error => {
      loading = undefined
      throw error
    })
    return loading
  }
  const tag = async (featureSet: string, name: string): Promise<string> => {
    const text = new TextEncoder().encode(JSON.stringify([featureSet, name]))
    const mac = new Uint8Array(await crypto.subtle.sign('HMAC', await key(), text))
    return toBase64Url(mac.subarray(0, tagBytes))
  }
  return {
    issue: async featureSet => {
      const name = toBase64Url(crypto.getRandomValues(new Uint8Array(12)))
      return `chk_${name}.${await tag(featureSet, name)}`
    },
    issued: async (featureSet, checkpoint) => {
      const [, name, given] = /^chk_([\w-]{16})\.([\w-]{16})$/.exec(checkpoint) ?? []
      return name !== undefined && given === (await tag(featureSet, name))
    },
  }
}

/** One per store, so that processes and their successors know each other's. */
async function load(open: () => Promise<Store>): Promise<CryptoKey> {
  const store = await open()
  const fresh = toBase64Url(crypto.getRandomValues(new Uint8Array(32)))
  await store.commit([put(keyName, fresh, { ifAbsent: true })])
  const bytes = fromBase64Url((await store.get(keyName))?.value ?? fresh)
  if (bytes === undefined) throw new Error('The key of checkpoints on the store is none')
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
}

/** Contents on their way into blobs, also into such as take them only whole. */
import type { BlobDraft, Blobs } from '../../../stores/blobs.ts'
import type { Ledger } from './ledger.ts'

/** Where it cannot be otherwise, it is found as soon as it is whole; then what discards it looks whether somebody else needs it. */
export async function newDraft(blobs: Blobs, ledger: Pick<Ledger, 'drop'>): Promise<BlobDraft> {
  if (blobs.drafts !== undefined) return blobs.drafts.begin()
  let whole: string | undefined
  return {
    id: '',
    size: 0,
    append: async (stream, options) => {
      const blob = await blobs.put(stream, options)
      whole = blob.digest
      return blob
    },
    publish: async () => undefined,
    discard: async () => {
      if (whole !== undefined) await ledger.drop(whole)
    },
  }
}

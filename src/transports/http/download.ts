/** Contents beside the endpoint, for whoever has their signed address: that alone lets in, and nobody is asked who he is. */
import type { HeaderReader } from '../../core/authorizer.ts'

export interface Downloads {
  /** Below the address of the endpoint: `/references/`. */
  readonly path: string
  open(asked: DownloadRequest): Promise<Download>
}

export interface DownloadRequest {
  readonly method: string
  /** What follows the path. */
  readonly name: string
  readonly query: URLSearchParams
  readonly header: HeaderReader
}

export interface Download {
  readonly status: number
  /** Flat: names and values. */
  readonly headers: string[]
  readonly body: ReadableStream<Uint8Array> | undefined
  /** To be called once nothing of it is read any more, however that came. */
  over?(): void
}

/** The name in the path of a request; undefined where the path is no download's. */
export function downloadName(downloads: Downloads | undefined, path: string): string | undefined {
  if (downloads === undefined) return undefined
  const at = path.lastIndexOf(downloads.path)
  const name = at === -1 ? '' : path.slice(at + downloads.path.length)
  return name === '' || name.includes('/') ? undefined : name
}

export function queryOf(url: string): URLSearchParams {
  const at = url.indexOf('?')
  return new URLSearchParams(at === -1 ? '' : url.slice(at + 1))
}

/** The body of a download, which tells when it is over by itself. */
export function watchedBody({ body, over }: Download): ReadableStream<Uint8Array> | undefined {
  if (body === undefined || over === undefined) return body
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read().catch(error => {
          over()
          throw error
        })
        if (!done) return controller.enqueue(value)
        over()
        controller.close()
      },
      cancel(reason) {
        over()
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}

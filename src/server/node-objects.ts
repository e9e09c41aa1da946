/**
 * As much of Node's requests and answers as the signatures of adapters have to name, so that our types can be read without those of
 * Node. What is given is the real thing, of `node:http`.
 */

export interface NodeRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly rawHeaders: readonly string[]
  readonly socket: object
}

export interface NodeResponse {
  statusCode: number
  readonly headersSent: boolean
  readonly writableEnded: boolean
  setHeader(name: string, value: string | number | readonly string[]): unknown
}

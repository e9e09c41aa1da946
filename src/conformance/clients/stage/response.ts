/**
 * As much of Node's answer to a request as plays need, so that our types can be read without those of Node. What they are given is
 * the real thing, of `node:http`.
 */
export interface StageResponse {
  readonly headersSent: boolean
  writeHead(status: number, headers?: Readonly<Record<string, string | number>>): StageResponse
  write(chunk: string | Uint8Array): boolean
  end(chunk?: string | Uint8Array): unknown
}

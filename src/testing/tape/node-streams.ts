/**
 * As much of Node's streams as signatures have to name, so that our types can be read without those of Node. What is given is the
 * real thing, of `node:stream`.
 */

export interface NodeReadable {
  readonly readable: boolean
  pause(): unknown
  resume(): unknown
  destroy(): unknown
}

export interface NodeWritable {
  readonly writable: boolean
  write(chunk: string | Uint8Array): boolean
  end(): unknown
  destroy(): unknown
}

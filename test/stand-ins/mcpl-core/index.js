/**
 * The connection that `@animalabs/heartbeat-mcpl` imports from a package that is not on npm: JSON-RPC, one message
 * per line, read one at a time. Written from the calls heartbeat makes; no line of the original is in it.
 */
import { createInterface } from 'node:readline'

export const method = { PUSH_EVENT: 'push/event', CHANNELS_LIST: 'channels/list' }

const closed = () => Object.assign(new Error('The connection is closed'), { name: 'ConnectionClosedError' })

export class McplConnection {
  static fromStreams(input, output) {
    return new McplConnection(input, output)
  }

  isClosed = false
  #output
  #lines
  #nextId = 1
  #asked = new Map()
  #arrived = []
  #reader = undefined

  constructor(input, output) {
    this.#output = output
    this.#lines = createInterface({ input })
    this.#lines.on('line', line => this.#receive(line))
    this.#lines.on('close', () => this.close())
  }

  nextMessage() {
    if (this.#arrived.length > 0) return Promise.resolve(this.#arrived.shift())
    if (this.isClosed) return Promise.reject(closed())
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject }
    })
  }

  sendRequest(name, params) {
    const id = this.#nextId++
    this.#write({ id, method: name, params })
    return new Promise((resolve, reject) => this.#asked.set(id, { resolve, reject }))
  }

  sendResponse(id, result) {
    this.#write({ id, result })
  }

  sendError(id, code, message) {
    this.#write({ id, error: { code, message } })
  }

  close() {
    if (this.isClosed) return
    this.isClosed = true
    this.#lines.close()
    this.#reader?.reject(closed())
    for (const waiter of this.#asked.values()) waiter.reject(closed())
  }

  #write(members) {
    if (!this.isClosed) this.#output.write(`${JSON.stringify({ jsonrpc: '2.0', ...members })}\n`)
  }

  #receive(line) {
    if (line.trim() === '') return
    const message = JSON.parse(line)
    if (message.method === undefined) return this.#settle(message)
    const event =
      message.id === undefined ? { type: 'notification', notification: message } : { type: 'request', request: message }
    const reader = this.#reader
    this.#reader = undefined
    if (reader === undefined) this.#arrived.push(event)
    else reader.resolve(event)
  }

  #settle({ id, result, error }) {
    const waiter = this.#asked.get(id)
    this.#asked.delete(id)
    if (error === undefined) waiter?.resolve(result)
    else waiter?.reject(new Error(error.message))
  }
}

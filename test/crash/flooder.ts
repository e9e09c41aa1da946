/** `node flooder.ts PORT PER_SECOND NAME`: sends events as fast as it is told to, and reads the answers without a look at them. */
import { connect } from 'node:net'
import { eventOf } from './inbox-sender.ts'

const [, , port = '', perSecond = '', name = ''] = process.argv
const socket = connect(Number(port), '127.0.0.1')
socket.on('error', () => process.exit(0))
socket.on('close', () => process.exit(0))
socket.resume()
const began = performance.now()
let sent = 0
setInterval(() => {
  const due = Math.floor(((performance.now() - began) / 1000) * Number(perSecond))
  let text = ''
  for (; sent < due; sent++) {
    const event = eventOf(`${name}-${sent}`, { n: sent % 100 })
    text += `${JSON.stringify({ id: sent, server: 'flood', event })}\n`
  }
  if (text !== '') socket.write(text)
}, 5)

import { expect, it } from 'vitest'
import { connect } from './connect.ts'

it.each([
  [{ onElicitation: () => undefined }, /connect has no option "onElicitation"\. The options are .*Did you mean onElicit/],
  [{ onSample: 'gpt' }, /connect: onSample is "gpt"; give a function/],
])('connect refuses %j before anything is opened', async (options, message) => {
  await expect(connect('http://127.0.0.1:9', options as never)).rejects.toThrow(message)
})

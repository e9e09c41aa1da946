/** Waiting for readers that are slow, or away for a moment. */
import type { Exchange } from '../../../engine/exchange.ts'

/** Undefined where its caller takes what is told. Else resolves when it may have changed; whoever waits looks again. */
export function hasBackpressureRoom({ aside }: Exchange): Promise<void> | undefined {
  if (aside?.onFree === undefined || aside.closed || (aside.blocked !== true && aside.attached !== false)) return undefined
  return new Promise(resolve => aside.onFree?.(resolve))
}

/** Resolves when there is room, or the signal ends it. */
export async function waitForReaders(exchange: Exchange, signal: AbortSignal): Promise<void> {
  for (
    let waiting = hasBackpressureRoom(exchange);
    waiting !== undefined && !signal.aborted;
    waiting = hasBackpressureRoom(exchange)
  )
    await Promise.race([waiting, ended(signal)])
}

function ended(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
}

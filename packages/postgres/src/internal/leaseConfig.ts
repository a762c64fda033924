/** `PURSER_LEASE`. A lease that ends before its holder can act would hand every charge round for ever. */
import { Config, Duration, Schema } from "effect"

/** From 100 millis to 1 hour; 15 seconds unless told. */
export const leaseConfig: Config.Config<Duration.Duration> = Config.schema(
  Schema.DurationFromString.check(Schema.makeFilter((lease: Duration.Duration) =>
    (Duration.toMillis(lease) >= 100 && Duration.toMillis(lease) <= 3_600_000) || "expected from 100 millis to 1 hour")),
  "PURSER_LEASE"
).pipe(Config.withDefault(Duration.seconds(15)))

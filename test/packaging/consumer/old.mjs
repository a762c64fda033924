// What a program is told that runs on an older Node than Purser does.
import { Purser } from "@purser/purser"

const said = await Purser.make({ PURSER_DATA_DIR: "old", PURSER_DATABASE_URL: "", PURSER_STRIPE_URL: "http://127.0.0.1:1", PURSER_STRIPE_KEY: "sk_test_old" }).then(() => "it runs", (error) => error.message)
console.log(JSON.stringify({ said }))

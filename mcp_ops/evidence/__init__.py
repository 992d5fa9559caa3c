"""Evidence for auditors: from the results of runs to what shows that each rule holds, and what nothing shows."""
